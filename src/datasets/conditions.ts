/**
 * Conditions on a line that is not parsed: the values that they ask for are found among its members, and those alone are
 * parsed. What a condition says of them is said in `where.ts`.
 */
import type { Scanner } from "./scanner.ts";
import type { Condition } from "./where.ts";

/** Members that mean a conversation: conditions on them need the whole line. */
const CONTENT = new Set(["messages", "choices", "response"]);

/** Lines that differ in nothing that conditions look at are many: what came of the last few is remembered, unless it is long. */
const [MOST_REMEMBERED, MOST_BYTES] = [8, 512];
/** Of a value that the line does not have. */
const ABSENT = -1;

/** What conditions looked at on a line, and whether they held. */
interface Remembered {
  readonly bytes: Uint8Array;
  /** By value, how many bytes. */
  readonly lengths: Int32Array;
  readonly holds: boolean;
}

export class SpanConditions {
  readonly #conditions: readonly Condition[];
  /** Names of values, first those at the top, then those in the request. */
  readonly #top: readonly string[];
  readonly #inRequest: readonly string[];
  /** By value, its first byte and how many there are. */
  readonly #starts: Int32Array;
  readonly #lengths: Int32Array;
  readonly #remembered: Remembered[] = [];
  #next = 0;

  private constructor(conditions: readonly Condition[], top: readonly string[], inRequest: readonly string[]) {
    this.#conditions = conditions;
    this.#top = top;
    this.#inRequest = inRequest;
    this.#starts = new Int32Array(top.length + inRequest.length);
    this.#lengths = new Int32Array(top.length + inRequest.length);
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
    this.#lengths.fill(ABSENT);
  }

  /** Which value the scanner's last string names, if a condition looks at it; else -1. */
  wantedTop(scanner: Scanner): number {
    const names = this.#top;
    for (let i = 0; i < names.length; i += 1) if (scanner.is(names[i] as string)) return i;
    return ABSENT;
  }

  wantedInRequest(scanner: Scanner): number {
    const names = this.#inRequest;
    for (let i = 0; i < names.length; i += 1) if (scanner.is(names[i] as string)) return this.#top.length + i;
    return ABSENT;
  }

  found(value: number, start: number, end: number): void {
    this.#starts[value] = start;
    this.#lengths[value] = end - start;
  }

  /** Whether all conditions hold of the line whose members were found. */
  hold(bytes: Buffer): boolean {
    const remembered = this.#remembered;
    for (let i = 0; i < remembered.length; i += 1) {
      const known = remembered[i] as Remembered;
      if (this.#isSame(known, bytes)) return known.holds;
    }
    const holds = this.#look(bytes);
    this.#remember(bytes, holds);
    return holds;
  }

  #isSame(known: Remembered, bytes: Buffer): boolean {
    const [starts, lengths] = [this.#starts, this.#lengths];
    let before = 0;
    for (let value = 0; value < lengths.length; value += 1) {
      const length = lengths[value] as number;
      if (length !== known.lengths[value]) return false;
      const start = starts[value] as number;
      for (let i = 0; i < length; i += 1) if (bytes[start + i] !== known.bytes[before + i]) return false;
      if (length !== ABSENT) before += length;
    }
    return true;
  }

  #remember(bytes: Buffer, holds: boolean): void {
    const parts: Buffer[] = [];
    for (const [value, length] of this.#lengths.entries()) {
      const start = this.#starts[value] as number;
      if (length !== ABSENT) parts.push(bytes.subarray(start, start + length));
    }
    const all = Buffer.concat(parts);
    if (all.length > MOST_BYTES) return;
    this.#remembered[this.#next] = { bytes: all, lengths: this.#lengths.slice(), holds };
    this.#next = (this.#next + 1) % MOST_REMEMBERED;
  }

  #look(bytes: Buffer): boolean {
    const line = this.#members(bytes, this.#top, 0);
    const request = this.#members(bytes, this.#inRequest, this.#top.length);
    if (Object.keys(request).length > 0) line.request = request;
    return this.#conditions.every((condition) => condition.holds(line));
  }

  #members(bytes: Buffer, names: readonly string[], first: number): Record<string, unknown> {
    const members: [string, unknown][] = [];
    for (const [i, name] of names.entries()) {
      const [start, length] = [this.#starts[first + i] as number, this.#lengths[first + i] as number];
      if (length !== ABSENT) members.push([name, JSON.parse(bytes.toString("utf8", start, start + length))]);
    }
    return Object.fromEntries(members);
  }
}
