/**
 * Conditions on a line that is not parsed: the values that they ask for are found among its members, and those alone are
 * parsed. What a condition says of them is said in `where.ts`.
 */
import type { Scanner } from "./scanner.ts";
import type { Condition } from "./where.ts";

/** Members that mean a conversation: conditions on them need the whole line. */
const CONTENT = new Set(["messages", "choices", "response"]);

type Span = readonly [start: number, end: number];

export class SpanConditions {
  readonly #conditions: readonly Condition[];
  readonly #top: readonly string[];
  readonly #inRequest: readonly string[];
  readonly #spans = new Map<string, Span>();
  readonly #requestSpans = new Map<string, Span>();

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
    this.#spans.clear();
    this.#requestSpans.clear();
  }

  /** The name of the scanner's last string, where a condition looks at it. */
  wantedTop(scanner: Scanner): string | undefined {
    return this.#top.find((name) => scanner.is(name));
  }

  wantedInRequest(scanner: Scanner): string | undefined {
    return this.#inRequest.find((name) => scanner.is(name));
  }

  found(name: string, start: number, end: number): void {
    this.#spans.set(name, [start, end]);
  }

  foundInRequest(name: string, start: number, end: number): void {
    this.#requestSpans.set(name, [start, end]);
  }

  /** Whether all conditions hold of the line whose members were found. */
  hold(bytes: Buffer): boolean {
    const line = objectOf(this.#spans, bytes);
    if (this.#requestSpans.size > 0) line.request = objectOf(this.#requestSpans, bytes);
    return this.#conditions.every((condition) => condition.holds(line));
  }
}

function objectOf(spans: ReadonlyMap<string, Span>, bytes: Buffer): Record<string, unknown> {
  const members = [...spans].map(([name, [start, end]]) => [name, JSON.parse(bytes.toString("utf8", start, end))]);
  return Object.fromEntries(members) as Record<string, unknown>;
}
