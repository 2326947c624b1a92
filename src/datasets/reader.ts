/** Lines in, rows out: what a thread does with a block. Everything that depends on one line alone happens here. */
import { isUtf8 } from "node:buffer";
import type { Conversation } from "../tokens/conversation.ts";
import type { Block } from "./blocks.ts";
import { excerptAt } from "./excerpt.ts";
import { jsonFault } from "./fault.ts";
import type { Candidate, Format, FormatOptions, Half } from "./format.ts";
import { type ConversationKeys, conversationKeys, type KeyList, splitPoint } from "./keys.ts";
import { setsOf } from "./near/sets.ts";
import {
  DEFAULT_LINE_BYTES,
  DEFAULT_TEST_SHARE,
  formatOptions,
  nearThreshold,
  needsKeys,
  type ReadPlan,
} from "./options.ts";
import { Redactor, SurvivedError } from "./redact.ts";
import { formatNamed } from "./registry.ts";
import { applyRules, damaged, RejectedRow, skipped } from "./row.ts";
import type { RowBuffer } from "./rowbuffer.ts";
import type { SessionEvent, SessionRules } from "./session.ts";
import { SpanReader } from "./spans.ts";
import type { BlockTally, Place } from "./tally.ts";
import { type Condition, parseCondition } from "./where.ts";

/** A row as its line of canonical JSON, without the newline. */
export interface ReadRow {
  readonly text: string;
  /** Where rows are compared or sampled. */
  readonly keys?: ConversationKeys;
}

export interface RowSink {
  /** Keys of rows, by row, and of their beginnings. */
  readonly wholes: KeyList;
  readonly beginnings: KeyList;
  /** A row was written to `LineReader.rows`, its keys to the lists. */
  written(line: number): void;
  /** Whether no more rows are wanted. */
  isFull(): boolean;
  row(line: number, row: ReadRow): void;
  half(line: number, half: Half): void;
  /** What a line says of a session. */
  event(line: number, event: SessionEvent): void;
}

/** Tokens of a conversation. */
type Count = (row: Conversation) => number;

/** A value's place in its source: the line, and the column of its first byte. */
export interface LineStart {
  readonly line: number;
  readonly column: number;
}

const NEWLINE = 10;

export class LineReader {
  readonly #plan: ReadPlan;
  readonly #format: Format | undefined;
  readonly #formatOptions: FormatOptions;
  readonly #conditions: readonly Condition[];
  readonly #redactor: Redactor | undefined;
  readonly #count: Count | undefined;
  readonly #needsKeys: boolean;
  readonly #maxLineBytes: number;
  readonly #spans: SpanReader | undefined;

  private constructor(plan: ReadPlan, count: Count | undefined) {
    const { options } = plan;
    this.#plan = plan;
    this.#format = plan.format === undefined ? undefined : formatNamed(plan.format);
    this.#formatOptions = formatOptions(plan);
    this.#conditions = (options.where ?? []).map(parseCondition);
    this.#redactor = options.redact && new Redactor(options.redact);
    this.#count = count;
    this.#maxLineBytes = options.max_line_bytes ?? DEFAULT_LINE_BYTES;
    this.#needsKeys = needsKeys(plan);
    this.#spans = SpanReader.for(plan, this.#redactor, this.#conditions);
  }

  /** Fails with RL6003, RL6011 or RL6013 where the plan cannot be carried out, and with RL6101 or RL6102 for its tokenizer. */
  static async open(plan: ReadPlan): Promise<LineReader> {
    return new LineReader(plan, await tokenCounter(plan));
  }

  /** Where rows of blocks are written to; undefined where that can be anywhere. */
  get rows(): RowBuffer | undefined {
    return this.#spans?.rows;
  }

  /** How lines make conversations, where none is one. */
  get session(): SessionRules | undefined {
    return this.#format?.session;
  }

  /** What near duplicates among rows are told by; undefined where they are not looked for. */
  setsOf(rows: Buffer): Uint32Array<ArrayBuffer> | undefined {
    const threshold = nearThreshold(this.#plan);
    return threshold === undefined ? undefined : setsOf(rows, threshold);
  }

  /** Places that a tally keeps for each reason; undefined for the usual few. */
  get mostPlaces(): number | undefined {
    return this.#plan.reportsAll ? Number.POSITIVE_INFINITY : undefined;
  }

  /** Reads a block from a byte on; returns how many lines that stands for and where it ended. */
  block({ bytes, overlong }: Block, tally: BlockTally, sink: RowSink, from = 0): { lines: number; end: number } {
    if (overlong) {
      this.tooLong({ line: 1, column: 1 }, tally);
      return { lines: 1, end: 0 };
    }
    const isText = isUtf8(bytes);
    if (isText) this.#spans?.take(bytes);
    let lines = 0;
    let start = from;
    while (start < bytes.length && !sink.isFull()) {
      const found = bytes.indexOf(NEWLINE, start);
      const end = found < 0 ? bytes.length : found;
      lines += 1;
      if (!isText || !this.#span(lines, start, end, tally, sink))
        this.bytes(bytes.subarray(start, end), { line: lines, column: 1 }, isText, tally, sink);
      start = end + 1;
    }
    return { lines, end: start };
  }

  /** Whether the line could be taken the short way. */
  #span(line: number, start: number, end: number, tally: BlockTally, sink: RowSink): boolean {
    if (!this.#spans || end - start > this.#maxLineBytes) return false;
    try {
      const row = this.#spans.line(start, end, sink, tally.redacted);
      if (!row) return false;
      tally.lines += 1;
      tally.toolTurns += row.toolTurns;
      if (row.rejected) tally.reject(row.rejected, () => ({ line, column: 1 }));
      else {
        tally.emptyTurns += row.emptyTurns;
        sink.written(line);
      }
      return true;
    } catch (error) {
      if (error instanceof SurvivedError) error.place = { line, column: 1 };
      throw error;
    }
  }

  /** One value's bytes; white space alone is nothing. `isText`: they are known to be UTF-8. */
  bytes(bytes: Buffer, at: LineStart, isText: boolean, tally: BlockTally, sink: RowSink): void {
    if (bytes.length > this.#maxLineBytes) this.tooLong(at, tally);
    else if (!isText && !isUtf8(bytes)) {
      tally.lines += 1;
      tally.reject(damaged("not valid UTF-8"), () => ({ ...at, column: at.column + badByte(bytes) }));
    } else this.#text(bytes.toString(), at, tally, sink);
  }

  /** Counts a value that is longer than allowed. */
  tooLong(at: LineStart, tally: BlockTally): void {
    tally.lines += 1;
    tally.reject(damaged(`longer than ${this.#maxLineBytes} bytes`), () => at);
  }

  #text(text: string, at: LineStart, tally: BlockTally, sink: RowSink): void {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      if (text.trim() === "") return;
      tally.lines += 1;
      const { at: offset, reason } = jsonFault(text);
      tally.reject(damaged(reason), () => placeIn(text, offset, at));
      return;
    }
    tally.lines += 1;
    const place = (offset: number): Place => placeIn(text, offset, at);
    const { session } = this.#format ?? {};
    if (session) readEvent(session, value, at.line, tally, sink, place);
    else this.value(value, at.line, tally, sink, place);
  }

  /** Rows of one parsed value. `place` says where something at an offset of its text stands. */
  value(value: unknown, line: number, tally: BlockTally, sink: RowSink, place: (offset: number) => Place): void {
    try {
      if (!this.#format) throw damaged("no known format");
      if (!this.#conditions.every((condition) => condition.holds(value))) throw skipped("does not meet a condition");
      const { rows, toolTurns, half, task } = this.#format.read(value, this.#formatOptions);
      tally.toolTurns += toolTurns;
      if (half) sink.half(line, half);
      if (task) sink.row(line, { text: JSON.stringify(task) });
      for (const row of rows) this.#candidate(row, line, tally, sink, place);
    } catch (error) {
      reject(error, tally, place);
    }
  }

  #candidate(
    candidate: Candidate,
    line: number,
    tally: BlockTally,
    sink: RowSink,
    place: (offset: number) => Place,
  ): void {
    try {
      const { options } = this.#plan;
      const { row, emptyTurns } = applyRules(candidate, options);
      this.#checkScore(row.score);
      if (options.split !== undefined && this.#sideOf(row) !== options.split)
        throw skipped("on the other side of the split");
      const clean = this.#redacted(row, tally);
      if (this.#count && this.#count(clean) > (options.max_tokens as number))
        throw skipped(`more than ${options.max_tokens} tokens`);
      const text = this.#line(clean);
      tally.emptyTurns += emptyTurns;
      sink.row(line, this.#needsKeys ? { text, keys: conversationKeys(clean.messages) } : { text });
    } catch (error) {
      reject(error, tally, place);
    }
  }

  #checkScore(score: number | undefined): void {
    const { min_score, weight_by } = this.#plan.options;
    if (min_score === undefined && weight_by === undefined) return;
    if (score === undefined) throw skipped("no score");
    if (min_score !== undefined && score < min_score) throw skipped(`a score below ${min_score}`);
  }

  #sideOf(row: Conversation): "train" | "test" {
    return splitPoint(row.messages) < (this.#plan.options.test_share ?? DEFAULT_TEST_SHARE) ? "test" : "train";
  }

  /** Without what was asked to be redacted. What survives in spite of it ends the import: better no rows than leaking ones. */
  #redacted(row: Candidate, tally: BlockTally): Candidate {
    if (!this.#redactor) return row;
    const clean = this.#redactor.redact(row, tally.redacted);
    const left = this.#redactor.survivors(clean);
    if (left.length > 0) throw new SurvivedError(left);
    return clean;
  }

  #line({ messages, tools, weight, score }: Candidate): string {
    const weighed = this.#plan.options.weight_by === "score" ? Math.max(0, score as number) : weight;
    return JSON.stringify({
      messages,
      ...(tools === undefined ? {} : { tools }),
      ...(weighed === undefined ? {} : { weight: weighed }),
    });
  }
}

function readEvent(
  session: SessionRules,
  value: unknown,
  line: number,
  tally: BlockTally,
  sink: RowSink,
  place: (offset: number) => Place,
): void {
  try {
    const event = session.event(value);
    if (event) sink.event(line, event);
  } catch (error) {
    reject(error, tally, place);
  }
}

function reject(error: unknown, tally: BlockTally, place: (offset: number) => Place): void {
  if (error instanceof RejectedRow) {
    tally.reject(error, () => {
      const { excerpt, ...where } = place(error.at);
      return error.kind === "damaged" && excerpt !== undefined ? { ...where, excerpt } : where;
    });
  } else if (error instanceof RangeError) tally.reject(damaged("nested too deeply"), () => place(0));
  else {
    if (error instanceof SurvivedError) error.place = place(0);
    throw error;
  }
}

/** Columns count UTF-16 units from 1. A value over several lines moves the line too. */
function placeIn(text: string, offset: number, start: LineStart): Place {
  const before = text.slice(0, offset);
  const lastBreak = before.lastIndexOf("\n");
  const line = start.line + (lastBreak < 0 ? 0 : before.split("\n").length - 1);
  const column = lastBreak < 0 ? start.column + offset : offset - lastBreak;
  return { line, column, excerpt: excerptAt(text, offset) };
}

/** The first byte that is not UTF-8. */
function badByte(bytes: Buffer): number {
  let [low, high] = [0, bytes.length];
  // The longest valid beginning, by halves; a cut inside a character counts as invalid, so look a character further back.
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    const isValid = [0, 1, 2, 3].some(
      (back) =>
        back <= middle && isUtf8(bytes.subarray(0, middle - back)) && couldGoOn(bytes.subarray(middle - back, middle)),
    );
    if (isValid) low = middle;
    else high = middle - 1;
  }
  return Math.min(low, bytes.length - 1);
}

const couldGoOn = (tail: Buffer): boolean => {
  if (tail.length === 0) return true;
  const [first = 0, ...rest] = tail;
  const length =
    first >= 0xf0 && first < 0xf5 ? 4 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xc2 && first < 0xe0 ? 2 : 0;
  return tail.length < length && rest.every((byte) => (byte & 0xc0) === 0x80);
};

async function tokenCounter({ options, tokenizerFolder }: ReadPlan): Promise<Count | undefined> {
  if (options.max_tokens === undefined || tokenizerFolder === undefined) return undefined;
  const { loadRenderer } = await import("../tokens/load.ts");
  const { RlcliError } = await import("../diagnostic.ts");
  const renderer = await loadRenderer(tokenizerFolder);
  return (row) => {
    try {
      return renderer.encode(row).length;
    } catch (error) {
      if (error instanceof RlcliError) throw skipped("the chat template refuses it");
      throw error;
    }
  };
}
