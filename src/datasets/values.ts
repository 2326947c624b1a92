/**
 * JSON values that do not stand on lines of their own: the elements of one large array, or values one after another,
 * indented or not. A scanner over bytes finds where each begins and ends; memory is for one value at a time.
 */
import type { Chunks } from "./decode.ts";
import { isTurn } from "./logs.ts";
import { isRecord } from "./row.ts";

/** `lines`: a value a line. `values`: one after another. `array`: the elements of arrays. */
export type Layout = "lines" | "values" | "array";

export interface FoundValue {
  /** The value's text; undefined where it is longer than allowed. */
  readonly bytes: Buffer | undefined;
  /** Where it begins, from 1; the column counts bytes. */
  readonly line: number;
  readonly column: number;
}

const [QUOTE, BACKSLASH, COMMA, NEWLINE] = [0x22, 0x5c, 0x2c, 10];
const [OPEN_BRACE, OPEN_BRACKET, CLOSE_BRACE, CLOSE_BRACKET] = [0x7b, 0x5b, 0x7d, 0x5d];
const isSpace = (byte: number): boolean => byte === 32 || byte === 9 || byte === 10 || byte === 13;
const opens = (byte: number | undefined): boolean => byte === OPEN_BRACE || byte === OPEN_BRACKET;

/** How a source is laid out, by its first bytes. */
export function layoutOf(head: Buffer): Layout {
  const start = skipSpace(head, 0);
  if (!opens(head[start])) return "lines";
  const end = valueEnd(head, start);
  if (head[start] === OPEN_BRACKET && !isConversation(head, start, end)) return "array";
  const firstBreak = head.indexOf(NEWLINE, start);
  if (end < 0)
    return firstBreak >= 0 && !parses(lineAt(head, firstBreak + 1)) && spansLines(head, firstBreak)
      ? "values"
      : "lines";
  if (firstBreak >= 0 && firstBreak < end) return parses(head.subarray(start, end)) ? "values" : "lines";
  const next = head.subarray(end).findIndex((byte) => !isSpace(byte) || byte === NEWLINE);
  return next >= 0 && opens(head[end + next]) ? "values" : "lines";
}

/** Whether an array is one conversation (a list of turns) and not a list of log lines. */
function isConversation(head: Buffer, start: number, end: number): boolean {
  if (end >= 0) {
    const value = parsed(head.subarray(start, end));
    if (!Array.isArray(value) || value.length === 0) return true;
    return value.some(isTurn) && !value.some((v) => isRecord(v) && Array.isArray(v.messages));
  }
  const first = skipSpace(head, start + 1);
  const firstEnd = opens(head[first]) ? valueEnd(head, first) : -1;
  return firstEnd >= 0 && isTurn(parsed(head.subarray(first, firstEnd)));
}

/** Whether the second line goes on with what the first began: it is indented, or closes something. */
function spansLines(head: Buffer, firstBreak: number): boolean {
  const next = head[firstBreak + 1];
  return next !== undefined && next !== OPEN_BRACE;
}

function lineAt(head: Buffer, start: number): Buffer {
  const end = head.indexOf(NEWLINE, start);
  return head.subarray(start, end < 0 ? head.length : end);
}

const parses = (bytes: Buffer): boolean => parsed(bytes) !== undefined;

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (at < bytes.length && isSpace(bytes[at] as number)) at += 1;
  return at;
}

/** After the end of the object or array at `start`; -1 where it does not end. */
function valueEnd(bytes: Buffer, start: number): number {
  let depth = 0;
  for (let at = start; at < bytes.length; at += 1) {
    const byte = bytes[at];
    if (byte === QUOTE) {
      at = stringEnd(bytes, at + 1);
      if (at < 0) return -1;
    } else if (opens(byte)) depth += 1;
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0) return at + 1;
    }
  }
  return -1;
}

/** The closing quote of a string that began before `from`; -1 where there is none. */
function stringEnd(bytes: Buffer, from: number): number {
  for (let at = bytes.indexOf(QUOTE, from); at >= 0; at = bytes.indexOf(QUOTE, at + 1)) {
    let slashes = 0;
    while (at - 1 - slashes >= from && bytes[at - 1 - slashes] === BACKSLASH) slashes += 1;
    if (slashes % 2 === 0) return at;
  }
  return -1;
}

/** Finds the values of a stream laid out as `values` or `array`. */
export class ValueSplitter {
  readonly #base: 0 | 1;
  readonly #maxBytes: number;
  /** Brackets that are open, the one around elements among them. */
  readonly #open: number[] = [];
  #isInString = false;
  #isEscaped = false;
  /** Of the value that has begun. */
  #parts: Buffer[] = [];
  #length = 0;
  #isOpen = false;
  #isDamaged = false;
  #line = 1;
  #lineStart = 0;
  #begin = { line: 1, column: 1 };
  /** Bytes before the chunk at hand. */
  #before = 0;

  constructor(layout: "values" | "array", maxBytes: number) {
    this.#base = layout === "array" ? 1 : 0;
    this.#maxBytes = maxBytes;
  }

  async *split(chunks: Chunks): AsyncGenerator<FoundValue> {
    for await (const chunk of chunks) yield* this.#chunk(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    if (this.#isOpen) yield this.#close();
  }

  *#chunk(bytes: Buffer): Generator<FoundValue> {
    let start = 0;
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at] as number;
      if (this.#isInString && byte !== NEWLINE) {
        this.#inString(byte);
        continue;
      }
      if (byte === NEWLINE) {
        this.#line += 1;
        this.#lineStart = this.#before + at + 1;
        // No string goes over a line's end: this value broke off.
        if (this.#isInString) {
          this.#isInString = false;
          this.#isDamaged = true;
        }
      }
      if (this.#isOpen && this.#beginsAnew(byte, at)) {
        this.#keep(bytes, start, at);
        yield this.#close();
      }
      if (!this.#isOpen) {
        if (isSpace(byte) || byte === COMMA || this.#isBracketOfBase(byte)) continue;
        this.#isOpen = true;
        this.#toBase();
        this.#begin = { line: this.#line, column: this.#before + at - this.#lineStart + 1 };
        start = at;
      }
      const ends = this.#step(byte);
      if (ends === "no") continue;
      const end = ends === "before" ? at : at + 1;
      this.#keep(bytes, start, end);
      start = end;
      yield this.#close();
      if (ends === "before" && byte === CLOSE_BRACKET) this.#open.length = 0;
    }
    if (this.#isOpen) this.#keep(bytes, start, bytes.length);
    this.#before += bytes.length;
  }

  #inString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === BACKSLASH) this.#isEscaped = true;
    else if (byte === QUOTE) this.#isInString = false;
  }

  /** The brackets around the elements are no part of them. */
  #isBracketOfBase(byte: number): boolean {
    if (this.#base === 0) return false;
    if (byte === OPEN_BRACKET && this.#open.length === 0) {
      this.#toBase();
      return true;
    }
    if (byte !== CLOSE_BRACKET || this.#open.length !== 1) return false;
    this.#open.length = 0;
    return true;
  }

  /** An object at the start of a line while another is open, or after damage: the open one broke off. */
  #beginsAnew(byte: number, at: number): boolean {
    const isAtLineStart = this.#before + at === this.#lineStart;
    return (
      isAtLineStart &&
      byte === OPEN_BRACE &&
      (this.#isDamaged || this.#open.length > this.#base) &&
      this.#begin.column === 1
    );
  }

  /** Whether the value ends with this byte, before it, or goes on. */
  #step(byte: number): "no" | "after" | "before" {
    if (byte === QUOTE) this.#isInString = true;
    else if (opens(byte)) this.#open.push(byte);
    else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      if (this.#open.length <= this.#base) return "before";
      const isPair = (this.#open.pop() === OPEN_BRACE) === (byte === CLOSE_BRACE);
      // A bracket that closes another kind ends the value too: nothing after it can be told to belong to it.
      return !isPair || this.#open.length === this.#base ? "after" : "no";
    } else if (this.#open.length === this.#base && (byte === COMMA || isSpace(byte))) return "before";
    return "no";
  }

  #keep(bytes: Buffer, start: number, end: number): void {
    this.#length += end - start;
    if (this.#length > this.#maxBytes) this.#parts = [];
    else if (end > start) this.#parts.push(Buffer.from(bytes.subarray(start, end)));
  }

  #close(): FoundValue {
    const bytes = this.#length > this.#maxBytes ? undefined : Buffer.concat(this.#parts);
    this.#parts = [];
    this.#length = 0;
    this.#isOpen = false;
    this.#isDamaged = false;
    this.#toBase();
    return { bytes, ...this.#begin };
  }

  #toBase(): void {
    this.#open.length = 0;
    if (this.#base === 1) this.#open.push(OPEN_BRACKET);
  }
}
