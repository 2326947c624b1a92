/**
 * The short way for the commonest log lines: rows are put together from spans of the line's bytes, without parsing it.
 * Lines of `messages` and `openai` take it; of messages that are more than plain text, each is parsed by itself. Anything else, and
 * everything that is to be counted or refused, is left to the formats. What it writes is byte for byte what they would
 * (test/datasets/spans.test.ts).
 */
import type { Message } from "../tokens/conversation.ts";
import { SpanConditions } from "./conditions.ts";
import type { FormatOptions } from "./format.ts";
import { type KeyList, kindOf } from "./keys.ts";
import { madeTurns } from "./madeturns.ts";
import { nextMark } from "./marks.ts";
import { DEFAULT_TEST_SHARE, formatOptions, needsKeys, type ReadPlan } from "./options.ts";
import { POINTS, WINDOW, WITHIN_WORDS } from "./redact/suspicion.ts";
import type { RedactionCounts } from "./redact.ts";
import { type Redactor, SurvivedError } from "./redact.ts";
import { type RejectedRow, skipped } from "./row.ts";
import type { RowBuffer } from "./rowbuffer.ts";
import { Scanner } from "./scanner.ts";
import { SpanMemory } from "./spanmemory.ts";
import type { Condition } from "./where.ts";

export interface SpanRow {
  readonly emptyTurns: number;
  readonly toolTurns: number;
  /** Why there is no row, though the line was read. */
  readonly rejected: RejectedRow | undefined;
}

/** Keys beside which a line of `openai` may mean something else, unless null. */
const OTHERS_OPENAI =
  "input res resp response_body responseBody output outputs completion preferred_output result chunks error status_code statusCode custom_id";
/** In `messages`. */
const OTHERS_MESSAGES = "system weight score";
/** Keys of a turn that must be null; more of them where tools or thinking are kept. */
const OTHERS_TURN = "weight from value refusal";
const THINKING_TURN = "reasoning_content reasoning thinking";

interface Role {
  readonly name: string;
  readonly role: string;
  /** Number of its kind and of its opening in `SpanMemory`. */
  readonly place: number;
}

const ROLES: readonly Role[] = [
  ["user", "user"],
  ["assistant", "assistant"],
  ["system", "system"],
  ["tool", "tool"],
  ["developer", "system"],
  ["function", "tool"],
].map(([name = "", role = ""], place) => ({ name, role, place }));
const KINDS = ROLES.map(({ role }) => kindOf({ role }));
const OPENINGS = ROLES.map(({ role }) => `,{"role":"${role}","content":`);
const [ROW_START, ROW_END] = [ROLES.length, ROLES.length + 1];
const PIECES = [...OPENINGS, '{"messages":[', "]}\n"];
const [QUOTE, OPEN_BRACKET, CLOSE_BRACE] = [0x22, 0x5b, 0x7d];
/** First bytes of what is white space beyond ASCII, from U+0085 to U+FEFF; not all that begins with them is. */
const SPACE_LEADS = new Set([0xc2, 0xe1, 0xe2, 0xe3, 0xef]);
const OTHER_SIDE = skipped("on the other side of the split");
const UNMET = skipped("does not meet a condition");

/** Names by their length, since most keys differ in that already. */
type Names = readonly (readonly string[])[];

function byLength(...lists: string[]): Names {
  const table: string[][] = Array.from({ length: 32 }, () => []);
  for (const name of lists.join(" ").split(" ")) if (name !== "") table[name.length]?.push(name);
  return table;
}

/** What a message's `content` is; empty before it was met. */
type ContentKind = "" | "text" | "none" | "other";

function roleOf(scanner: Scanner): Role | undefined {
  for (const role of ROLES) if (scanner.is(role.name)) return role;
  return undefined;
}

interface Turn {
  readonly role: Role;
  readonly start: number;
  readonly stop: number;
  readonly isCanonical: boolean;
  /** The whole turn, where it is more than its text. */
  readonly made: Message | undefined;
}

/** Tool definitions, of the line or of the request in it. */
interface Tools {
  readonly start: number;
  readonly stop: number;
  readonly isInRequest: boolean;
}

/** Where keys go. */
interface KeySink {
  readonly wholes: KeyList;
  readonly beginnings: KeyList;
}

export class SpanReader {
  readonly #scanner = new Scanner();
  readonly #memory: SpanMemory;
  readonly #isOpenai: boolean;
  readonly #keepsTools: boolean;
  readonly #formatOptions: FormatOptions;
  readonly #others: Names;
  readonly #turnOthers: Names;
  readonly #bodyOthers: Names;
  readonly #minMessages: number;
  readonly #needsKeys: boolean;
  readonly #redactor: Redactor | undefined;
  readonly #conditions: SpanConditions | undefined;
  readonly #split: { readonly isTest: boolean; readonly share: number } | undefined;
  #prompt: Turn[] | undefined;
  #isPromptInRequest = false;
  #answer: Turn[] | undefined;
  #tools: Tools | undefined;
  #emptyTurns = 0;
  #toolTurns = 0;
  /** Of the message that is being read. */
  #role: Role | undefined;
  #content: ContentKind = "";
  #contentStart = 0;
  #contentStop = 0;
  #isCanonical = true;
  #hasCalls = false;

  private constructor(plan: ReadPlan, redactor: Redactor | undefined, conditions: SpanConditions | undefined) {
    const { keep_tools = false, keep_thinking = false, min_messages, split, test_share } = plan.options;
    this.#isOpenai = plan.format === "openai";
    this.#keepsTools = keep_tools;
    this.#formatOptions = formatOptions(plan);
    const functions = keep_tools ? "functions" : "";
    this.#others = byLength(this.#isOpenai ? OTHERS_OPENAI : OTHERS_MESSAGES, this.#isOpenai ? functions : "");
    this.#bodyOthers = byLength(functions);
    this.#turnOthers = byLength(OTHERS_TURN, keep_thinking ? THINKING_TURN : "");
    this.#minMessages = min_messages;
    this.#needsKeys = needsKeys(plan);
    this.#redactor = redactor;
    this.#conditions = conditions;
    this.#split = split && { isTest: split === "test", share: test_share ?? DEFAULT_TEST_SHARE };
    this.#memory = new SpanMemory(redactor && POINTS, KINDS, PIECES);
  }

  /** Undefined where the plan asks for more than spans can tell. */
  static for(plan: ReadPlan, redactor: Redactor | undefined, conditions: readonly Condition[]): SpanReader | undefined {
    const { min_score, weight_by, max_tokens, role_prefix } = plan.options;
    const isPlain =
      [min_score, weight_by, max_tokens, role_prefix].every((option) => option === undefined) && !plan.isVerbatim;
    if (!isPlain || (plan.format !== "openai" && plan.format !== "messages")) return undefined;
    const onSpans = conditions.length > 0 ? SpanConditions.of(conditions) : undefined;
    return conditions.length > 0 && !onSpans ? undefined : new SpanReader(plan, redactor, onSpans);
  }

  /** Where rows are written to. */
  get rows(): RowBuffer {
    return this.#memory.rows;
  }

  /** The block that the next lines are in. */
  take(bytes: Buffer): void {
    this.#memory.take(bytes);
  }

  /**
   * Writes the row of the line at bytes [start, end) of the block, with its newline; undefined, and nothing written, where
   * it cannot. Throws `SurvivedError` for what redaction left.
   */
  line(start: number, end: number, keys: KeySink, redacted: RedactionCounts): SpanRow | undefined {
    this.#prompt = undefined;
    this.#answer = undefined;
    this.#tools = undefined;
    this.#emptyTurns = 0;
    this.#toolTurns = 0;
    this.#conditions?.begin();
    const scanner = this.#scanner;
    scanner.begin(this.#memory, start, end);
    if (!scanner.object(this.#topMember) || !scanner.isDone() || !this.#prompt) return undefined;
    if (this.#conditions && !this.#conditions.hold(this.#memory.bytes))
      return { emptyTurns: 0, toolTurns: 0, rejected: UNMET };
    const turns: Turn[] = this.#prompt;
    if (this.#answer) for (const turn of this.#answer as readonly Turn[]) turns.push(turn);
    if (turns.length < this.#minMessages || turns.at(-1)?.role.role !== "assistant") return undefined;
    if (this.#split && !this.#isOnSide(turns)) return this.#row(OTHER_SIDE);
    this.#write(turns, keys, redacted);
    return this.#row(undefined);
  }

  /** Always of the same shape. */
  #row(rejected: RejectedRow | undefined): SpanRow {
    return { emptyTurns: this.#emptyTurns, toolTurns: this.#toolTurns, rejected };
  }

  readonly #topMember = (): boolean => {
    const { at } = this.#scanner;
    const wanted = this.#conditions ? this.#conditions.wantedTop(this.#scanner) : -1;
    const isRead = this.#top();
    if (wanted >= 0 && isRead) this.#conditions?.found(wanted, at, this.#scanner.at);
    return isRead;
  };

  #top(): boolean {
    const scanner = this.#scanner;
    if (scanner.is("messages")) return this.#promptHere(false);
    if (this.#keepsTools && scanner.is("tools")) return this.#toolsHere(false);
    // Conditions look into requests whatever the format.
    if (scanner.is("request") && (this.#isOpenai || this.#conditions))
      return scanner.isNull() || scanner.object(this.#requestMember);
    if (!this.#isOpenai) return this.#other(this.#others);
    if (scanner.is("choices")) return this.#choicesHere();
    if (scanner.is("response")) return scanner.isNull() || scanner.object(this.#responseMember);
    return this.#other(this.#others);
  }

  readonly #requestMember = (): boolean => {
    const { at } = this.#scanner;
    const wanted = this.#conditions ? this.#conditions.wantedInRequest(this.#scanner) : -1;
    const isPrompt = this.#isOpenai && this.#scanner.is("messages");
    const isTools = this.#isOpenai && this.#keepsTools && this.#scanner.is("tools");
    const isRead = isPrompt ? this.#promptHere(true) : isTools ? this.#toolsHere(true) : this.#other(this.#bodyOthers);
    if (wanted >= 0 && isRead) this.#conditions?.found(wanted, at, this.#scanner.at);
    return isRead;
  };

  readonly #responseMember = (): boolean =>
    this.#scanner.is("choices") ? this.#choicesHere() : this.#other(this.#others);

  /** A key without meaning here is passed; one that could change the meaning must be null. */
  #other(others: Names): boolean {
    const scanner = this.#scanner;
    const names = others[scanner.stop - scanner.start];
    if (names) for (const name of names) if (scanner.is(name)) return scanner.isNull();
    return scanner.skip();
  }

  /** A list of tool definitions; what else may stand there is left to the formats. */
  #toolsHere(isInRequest: boolean): boolean {
    const scanner = this.#scanner;
    if (scanner.isNull()) return true;
    if (this.#tools || scanner.peek() !== OPEN_BRACKET) return false;
    const start = scanner.at;
    if (!scanner.skip()) return false;
    this.#tools = { start, stop: scanner.at, isInRequest };
    return true;
  }

  #promptHere(isInRequest: boolean): boolean {
    if (this.#prompt) return false;
    this.#isPromptInRequest = isInRequest;
    const turns: Turn[] = [];
    this.#prompt = turns;
    return this.#scanner.array(this.#promptTurn);
  }

  readonly #promptTurn = (): boolean => this.#turn(this.#prompt as Turn[]);

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
    this.#role = undefined;
    this.#content = "";
    this.#hasCalls = false;
    this.#scanner.peek();
    const from = this.#scanner.at;
    if (!this.#scanner.object(this.#turnMember)) return false;
    // What was set by the members; a type that was narrowed above knows nothing of it.
    const role = this.#role as Role | undefined;
    const content = this.#content as ContentKind;
    if (!role) return false;
    const isTool = role.role === "tool";
    if (this.#hasCalls || (isTool ? this.#keepsTools : content === "other")) return this.#madeTurn(from, turns);
    if (content === "") return false;
    if (isTool) this.#toolTurns += 1;
    else if (content === "none") this.#emptyTurns += 1;
    else {
      const [start, stop, isCanonical] = [this.#contentStart, this.#contentStop, this.#isCanonical];
      if (!this.#saysSomething(start, stop)) return false;
      turns.push({ role, start, stop, isCanonical, made: undefined });
    }
    return true;
  }

  /** The message from byte `from` to where the scanner is, parsed. */
  #madeTurn(from: number, turns: Turn[]): boolean {
    const read = madeTurns(this.#memory.bytes.toString("utf8", from, this.#scanner.at), this.#formatOptions);
    if (!read) return false;
    this.#emptyTurns += read.emptyTurns;
    this.#toolTurns += read.toolTurns;
    for (const made of read.messages) {
      const role = ROLES.find((known) => known.name === made.role);
      if (!role) return false;
      turns.push({ role, start: 0, stop: 0, isCanonical: false, made });
    }
    return true;
  }

  readonly #turnMember = (): boolean => {
    const scanner = this.#scanner;
    if (scanner.is("role")) {
      if (this.#role || !scanner.string()) return false;
      this.#role = roleOf(scanner);
      return this.#role !== undefined;
    }
    if (this.#keepsTools && (scanner.is("tool_calls") || scanner.is("function_call"))) {
      if (scanner.isNull()) return true;
      this.#hasCalls = true;
      return scanner.skip();
    }
    if (!scanner.is("content")) return this.#other(this.#turnOthers);
    if (this.#content !== "") return false;
    this.#content = "none";
    if (scanner.isNull()) return true;
    if (scanner.peek() !== QUOTE) {
      this.#content = "other";
      return scanner.skip();
    }
    this.#content = "text";
    const isString = scanner.string();
    this.#contentStart = scanner.start;
    this.#contentStop = scanner.stop;
    this.#isCanonical = scanner.isCanonical;
    return isString;
  };

  /** Whether a text surely is not blank: after spaces, something begins that is no white space. */
  #saysSomething(start: number, stop: number): boolean {
    const { bytes } = this.#memory;
    let at = start;
    while (at < stop && bytes[at] === 0x20) at += 1;
    if (at >= stop) return false;
    const first = bytes[at] as number;
    // An escaped quote or backslash can be seen; of others it is not asked.
    if (first === 0x5c) return bytes[at + 1] === 0x22 || bytes[at + 1] === 0x5c;
    return first < 0x7f || (first > 0x7f && !SPACE_LEADS.has(first));
  }

  /** The text whose canonical JSON stands in bytes [start, stop). */
  #textOf(start: number, stop: number): string {
    const { bytes, stops } = this.#memory;
    // Without an escape in it, a string is its own text.
    if (nextMark(stops, start, stop) === stop) return bytes.toString("utf8", start, stop);
    return JSON.parse(`"${bytes.toString("utf8", start, stop)}"`) as string;
  }

  #isOnSide(turns: readonly Turn[]): boolean {
    const memory = this.#memory;
    memory.clearKey();
    for (const turn of beginningOf(turns)) {
      const { role, start, stop } = turn;
      if (turn.made) memory.foldMessage(turn.made);
      else if (turn.isCanonical) memory.fold(role.place, start, stop);
      else memory.foldLiteral(role.place, JSON.stringify(this.#textOf(start, stop)));
    }
    return memory.keyPoint() < (this.#split?.share as number) === this.#split?.isTest;
  }

  #write(turns: readonly Turn[], keys: KeySink, redacted: RedactionCounts): void {
    const memory = this.#memory;
    const { rows } = memory;
    this.#redactor?.begin(redacted);
    this.#survived.length = 0;
    memory.clearKey();
    memory.piece(ROW_START);
    for (let i = 0; i < turns.length; i += 1) {
      const turn = turns[i] as Turn;
      const { place, role } = turn.role;
      if (turn.made) this.#writeMade(turn.made, i === 0);
      else {
        memory.piece(place, i === 0 ? 1 : 0);
        const start = rows.length;
        this.#writeContent(turn);
        const end = rows.length;
        rows.byte(CLOSE_BRACE);
        if (this.#needsKeys) memory.foldRows(place, start + 1, end - 1);
      }
      if (this.#needsKeys && role === "assistant" && i < turns.length - 1) memory.keep(keys.beginnings);
    }
    this.#writeEnd();
    const left = this.#redactor ? [...this.#survived, ...this.#redactor.leftovers()] : [];
    if (left.length > 0) throw new SurvivedError([...new Set(left)]);
    if (this.#needsKeys) memory.keep(keys.wholes);
  }

  /** What redaction left in turns and definitions that were parsed. */
  readonly #survived: string[] = [];

  #writeMade(message: Message, isFirst: boolean): void {
    const clean = this.#clean(message);
    this.#memory.rows.text(isFirst ? JSON.stringify(clean) : `,${JSON.stringify(clean)}`);
    if (this.#needsKeys) this.#memory.foldMessage(clean);
  }

  #clean<V>(value: V): V {
    if (!this.#redactor) return value;
    const clean = this.#redactor.value(value);
    this.#survived.push(...this.#redactor.survivors(clean));
    return clean;
  }

  /** After the turns: tool definitions, where the prompt's own body has some. */
  #writeEnd(): void {
    const tools = this.#tools;
    const memory = this.#memory;
    const isOfPrompt = tools !== undefined && tools.isInRequest === this.#isPromptInRequest;
    const value: unknown = isOfPrompt ? JSON.parse(memory.bytes.toString("utf8", tools.start, tools.stop)) : undefined;
    if (!Array.isArray(value) || value.length === 0) memory.piece(ROW_END);
    else memory.rows.text(`],"tools":${JSON.stringify(this.#clean(value))}}\n`);
  }

  /** The turn's content with its quotes, as it stands on the line or made anew. */
  #writeContent(turn: Turn): void {
    const { start, stop, isCanonical } = turn;
    const memory = this.#memory;
    const redactor = this.#redactor;
    const suspicion = isCanonical && redactor ? redactor.suspicion(memory, start, stop) : 0;
    if (isCanonical && suspicion === 0) memory.span(start - 1, stop + 1);
    else if (redactor && isCanonical && (suspicion & ~WITHIN_WORDS) === 0) this.#writeRedacted(redactor, turn);
    else {
      const text = this.#textOf(start, stop);
      const clean = redactor ? redactor.text(text, isCanonical ? suspicion : undefined) : text;
      if (clean === text && isCanonical) memory.span(start - 1, stop + 1);
      else memory.rows.text(JSON.stringify(clean));
    }
  }

  /** Puts content together from what lies between windows and what redaction makes of them. */
  #writeRedacted(redactor: Redactor, { start, stop }: Turn): void {
    const memory = this.#memory;
    const { windows, windowsEnd } = redactor.lastSuspicion;
    const given: string[] = [];
    const suspicions: number[] = [];
    for (let i = 0; i < windowsEnd; i += WINDOW) {
      given.push(this.#textOf(windows[i] as number, windows[i + 1] as number));
      suspicions.push(windows[i + 2] as number);
    }
    const pieces = given.slice();
    let copied = start - 1;
    if (redactor.pieces(pieces, suspicions))
      for (let i = 0; i < pieces.length; i += 1) {
        // What did not change is among what is copied.
        if (pieces[i] === given[i]) continue;
        const [from, to] = [windows[WINDOW * i] as number, windows[WINDOW * i + 1] as number];
        memory.span(copied, from);
        // Placeholders need no escapes: where there were none, there are none.
        const isPlain = nextMark(memory.stops, from, to) === to;
        memory.rows.text(isPlain ? (pieces[i] as string) : JSON.stringify(pieces[i]).slice(1, -1));
        copied = to;
      }
    memory.span(copied, stop + 1);
  }
}

/** Up to the first question; the first turn where there is none. */
function beginningOf(turns: readonly Turn[]): readonly Turn[] {
  for (let i = 0; i < turns.length; i += 1) if (turns[i]?.role.role === "user") return turns.slice(0, i + 1);
  return turns.slice(0, 1);
}
