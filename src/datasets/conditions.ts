/**
 * Conditions on a line that is not parsed: the values that they ask for are found among its members, and those alone are
 * parsed. What a condition says of them is said in `where.ts`.
 */
import type { Scanner } from "./scanner.ts";
import type { Condition } from "./where.ts";

/** Members that mean a conversation: conditions on them need the whole line. */
const CONTENT = new Set(["messages", "choices", "response"]);

type Span = readonly [start: number, end: number];

/** Lines that differ in nothing that conditions look at are many: what came of so many texts of so many bytes is remembered. */
const [MOST_REMEMBERED, MOST_BYTES] = [1024, 512];

export class SpanConditions {
  readonly #conditions: readonly Condition[];
  readonly #top: readonly string[];
  readonly #inRequest: readonly string[];
  readonly #spans = new Map<string, Span>();
  readonly #requestSpans = new Map<string, Span>();
  readonly #remembered = new Map<string, boolean>();

  private constructor(conditions: readonly Condition[], top: readonly string[], inRequest: readonly string[]) {
    this.#conditions = conditions;
    this.#top = top;
    this.#inRequest = inRequest;
  }

  /** Undefined where a condition may ask for what is in the conversation itself. */
  static of(conditions: readonly Condition[]): SpanConditions | undefined {
    const top = new Set<string>();
    const inRequest = new Set<string>();
    for (const path of conditions.flatMap((condition) => condition.paths)) {
      // A name may hold the dots itself, at any level.
      const [first = "", ...rest] = path;
      top.add(path.join("."));
      if (first !== "request") top.add(first);
      else {
        inRequest.add(rest[0] ?? "");
        inRequest.add(rest.join("."));
      }
    }
    const asksForContent =
      [...top].some((name) => CONTENT.has(name)) || top.has("request") || inRequest.has("messages");
    return asksForContent ? undefined : new SpanConditions(conditions, [...top], [...inRequest]);
  }

  begin(): void {
    // Clearing an empty map takes new memory.
    if (this.#spans.size > 0) this.#spans.clear();
    if (this.#requestSpans.size > 0) this.#requestSpans.clear();
  }

  /** The name of the scanner's last string, where a condition looks at it. */
  wantedTop(scanner: Scanner): string | undefined {
    for (const name of this.#top) if (scanner.is(name)) return name;
    return undefined;
  }

  wantedInRequest(scanner: Scanner): string | undefined {
    for (const name of this.#inRequest) if (scanner.is(name)) return name;
    return undefined;
  }

  found(name: string, start: number, end: number): void {
    this.#spans.set(name, [start, end]);
  }

  foundInRequest(name: string, start: number, end: number): void {
    this.#requestSpans.set(name, [start, end]);
  }

  /** Whether all conditions hold of the line whose members were found. */
  hold(bytes: Buffer): boolean {
    const texts = textsOf(this.#spans, bytes);
    const inRequest = textsOf(this.#requestSpans, bytes);
    // No name and no value holds a line break of its own: names are keys without escapes, values are JSON.
    const key = `${texts.join("\n")}\n\n${inRequest.join("\n")}`;
    const known = this.#remembered.get(key);
    if (known !== undefined) return known;
    const line = objectOf(texts);
    if (inRequest.length > 0) line.request = objectOf(inRequest);
    const holds = this.#conditions.every((condition) => condition.holds(line));
    if (key.length <= MOST_BYTES && this.#remembered.size < MOST_REMEMBERED) this.#remembered.set(key, holds);
    return holds;
  }
}

/** Names and values in turn, values as JSON. */
function textsOf(spans: ReadonlyMap<string, Span>, bytes: Buffer): string[] {
  const texts: string[] = [];
  for (const [name, [start, end]] of spans) texts.push(name, bytes.toString("utf8", start, end));
  return texts;
}

function objectOf(texts: readonly string[]): Record<string, unknown> {
  const members: [string, unknown][] = [];
  for (let i = 0; i < texts.length; i += 2) members.push([texts[i] as string, JSON.parse(texts[i + 1] as string)]);
  return Object.fromEntries(members);
}
