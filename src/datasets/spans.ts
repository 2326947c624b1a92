/**
 * The short way for the commonest log lines: rows are put together from spans of the line's bytes, without parsing it.
 * Lines of `messages` and `openai` whose turns are plain text take it; anything else, and everything that is to be
 * counted or refused, is left to the formats. What it writes is byte for byte what they would (test/datasets/spans.test.ts).
 */
import { createHash } from "node:crypto";
import type { ConversationKeys } from "./keys.ts";
import type { ReadPlan } from "./options.ts";
import type { RowBuffer } from "./rowbuffer.ts";
import { Scanner } from "./scanner.ts";

export interface SpanRow {
  readonly emptyTurns: number;
  readonly toolTurns: number;
  readonly keys: ConversationKeys | undefined;
}

/** Keys beside which a line of `openai` may mean something else, unless null. */
const OTHERS_OPENAI =
  "input res resp response_body responseBody output outputs completion preferred_output result chunks error status_code statusCode custom_id";
/** In `messages`. */
const OTHERS_MESSAGES = "system weight score";
const ROLES: readonly (readonly [string, string])[] = [
  ["user", "user"],
  ["assistant", "assistant"],
  ["system", "system"],
  ["tool", "tool"],
  ["developer", "system"],
  ["function", "tool"],
];

/** Names by their length, since most keys differ in that already. */
function byLength(names: string): readonly (readonly string[])[] {
  const table: string[][] = Array.from({ length: 32 }, () => []);
  for (const name of names.split(" ")) table[name.length]?.push(name);
  return table;
}

interface Turn {
  readonly role: string;
  readonly start: number;
  readonly stop: number;
  readonly isCanonical: boolean;
}

export class SpanReader {
  readonly #scanner = new Scanner();
  readonly #isOpenai: boolean;
  readonly #others: readonly (readonly string[])[];
  readonly #minMessages: number;
  readonly #needsKeys: boolean;
  #prompt: Turn[] | undefined;
  #answer: Turn[] | undefined;
  #emptyTurns = 0;
  #toolTurns = 0;

  private constructor({ format, options }: ReadPlan) {
    this.#isOpenai = format === "openai";
    this.#others = byLength(this.#isOpenai ? OTHERS_OPENAI : OTHERS_MESSAGES);
    this.#minMessages = options.min_messages;
    this.#needsKeys = options.dedupe !== undefined || options.sample !== undefined;
  }

  /** Undefined where the plan asks for more than spans can tell. */
  static for(plan: ReadPlan): SpanReader | undefined {
    const { keep_tools, keep_thinking, choices, where, min_score, weight_by, max_tokens, redact, split } = plan.options;
    const asks = [keep_tools, keep_thinking, choices, where, min_score, weight_by, max_tokens, redact, split];
    const isPlain = asks.every((option) => option === undefined) && !plan.isVerbatim;
    return isPlain && (plan.format === "openai" || plan.format === "messages") ? new SpanReader(plan) : undefined;
  }

  /** Writes the row of the line at bytes [start, end), with its newline; undefined, and nothing written, where it cannot. */
  line(bytes: Buffer, start: number, end: number, out: RowBuffer): SpanRow | undefined {
    this.#prompt = undefined;
    this.#answer = undefined;
    this.#emptyTurns = 0;
    this.#toolTurns = 0;
    const scanner = this.#scanner;
    scanner.begin(bytes, start, end);
    if (!scanner.object(this.#topMember) || !scanner.isDone() || !this.#prompt) return undefined;
    const prompt: readonly Turn[] = this.#prompt;
    const turns = this.#answer ? [...prompt, ...(this.#answer as readonly Turn[])] : prompt;
    if (turns.length < this.#minMessages || turns.at(-1)?.role !== "assistant") return undefined;
    const keys = this.#write(bytes, turns, out);
    return { emptyTurns: this.#emptyTurns, toolTurns: this.#toolTurns, keys };
  }

  readonly #topMember = (): boolean => {
    const scanner = this.#scanner;
    if (scanner.is("messages")) return this.#promptHere();
    if (!this.#isOpenai) return this.#other();
    if (scanner.is("choices")) return this.#choicesHere();
    if (scanner.is("request")) return scanner.isNull() || scanner.object(this.#requestMember);
    if (scanner.is("response")) return scanner.isNull() || scanner.object(this.#responseMember);
    return this.#other();
  };

  readonly #requestMember = (): boolean => (this.#scanner.is("messages") ? this.#promptHere() : this.#scanner.skip());

  readonly #responseMember = (): boolean => (this.#scanner.is("choices") ? this.#choicesHere() : this.#other());

  /** A key without meaning here is passed; one that could change the meaning must be null. */
  #other(): boolean {
    const scanner = this.#scanner;
    const names = this.#others[scanner.stop - scanner.start];
    if (names) for (const name of names) if (scanner.is(name)) return scanner.isNull();
    return scanner.skip();
  }

  #promptHere(): boolean {
    if (this.#prompt) return false;
    const turns: Turn[] = [];
    this.#prompt = turns;
    return this.#scanner.array(() => this.#turn(turns));
  }

  #choicesHere(): boolean {
    if (this.#answer) return false;
    const turns: Turn[] = [];
    this.#answer = turns;
    let count = 0;
    const isRead = this.#scanner.array(() => {
      count += 1;
      return count === 1 && this.#choice(turns);
    });
    return isRead && count === 1;
  }

  #choice(turns: Turn[]): boolean {
    const scanner = this.#scanner;
    let messages = 0;
    const isRead = scanner.object(() => {
      if (scanner.is("delta")) return false;
      if (!scanner.is("message")) return scanner.skip();
      messages += 1;
      return this.#turn(turns);
    });
    return isRead && messages === 1;
  }

  /** One message, appended unless it says nothing or is a tool's. */
  #turn(turns: Turn[]): boolean {
    const scanner = this.#scanner;
    let role = "";
    let content: "" | "text" | "none" | "other" = "";
    let [start, stop, isCanonical] = [0, 0, true];
    const isRead = scanner.object(() => {
      if (scanner.is("role")) {
        if (role !== "" || !scanner.string()) return false;
        role = ROLES.find(([name]) => scanner.is(name))?.[1] ?? "";
        return role !== "";
      }
      if (scanner.is("content")) {
        if (content !== "") return false;
        content = "none";
        if (scanner.isNull()) return true;
        if (scanner.peek() !== 0x22) {
          content = "other";
          return scanner.skip();
        }
        content = "text";
        const isString = scanner.string();
        [start, stop, isCanonical] = [scanner.start, scanner.stop, scanner.isCanonical];
        return isString;
      }
      if (scanner.is("weight") || scanner.is("from") || scanner.is("value") || scanner.is("refusal"))
        return scanner.isNull();
      return scanner.skip();
    });
    if (!isRead || role === "" || content === "") return false;
    if (role === "tool") this.#toolTurns += 1;
    else if (content === "other") return false;
    else if (content === "none") this.#emptyTurns += 1;
    else if (!this.#saysSomething(start, stop)) return false;
    else turns.push({ role, start, stop, isCanonical });
    return true;
  }

  /** Whether a text surely is not blank: it begins with a visible ASCII character. */
  #saysSomething(start: number, stop: number): boolean {
    const first = this.#scanner.bytes[start] as number;
    return start < stop && first > 0x20 && first < 0x7f && first !== 0x5c;
  }

  #write(bytes: Buffer, turns: readonly Turn[], out: RowBuffer): ConversationKeys | undefined {
    const hash = this.#needsKeys ? createHash("sha1") : undefined;
    const beginnings: bigint[] = [];
    out.ascii('{"messages":[');
    for (const [i, { role, start, stop, isCanonical }] of turns.entries()) {
      if (i > 0) out.ascii(",");
      const from = out.length;
      out.ascii(`{"role":"${role}","content":`);
      if (isCanonical) out.copy(bytes, start - 1, stop + 1);
      else out.text(JSON.stringify(JSON.parse(bytes.toString("utf8", start - 1, stop + 1))));
      out.ascii("}");
      hash?.update(out.since(from));
      if (hash && role === "assistant" && i < turns.length - 1)
        beginnings.push(hash.copy().digest().readBigUInt64LE(0));
    }
    out.ascii("]}\n");
    return hash && { whole: hash.digest().readBigUInt64LE(0), beginnings };
  }
}
