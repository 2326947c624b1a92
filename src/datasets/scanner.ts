/**
 * Reads JSON in place: checks that it is JSON as JSON.parse would, and finds where values lie, without making them. It may
 * give up on anything (`false`): whoever uses it then parses. It must never accept what JSON.parse refuses.
 * Bytes must be valid UTF-8. Strings are passed from mark to mark, so that their length hardly matters.
 */
import { type MarkedBytes, nextMark } from "./marks.ts";

const [QUOTE, BACKSLASH, COMMA, COLON, MINUS, DOT] = [0x22, 0x5c, 0x2c, 0x3a, 0x2d, 0x2e];
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET] = [0x7b, 0x7d, 0x5b, 0x5d];
/** Deeper values are left to JSON.parse, which does not recurse. */
const MOST_DEPTH = 100;

/** What follows a backslash: 1 as JSON.stringify would write it too, 2 another spelling, 0 nothing. */
const ESCAPES = new Uint8Array(256);
for (const c of '"\\bfnrt') ESCAPES[c.charCodeAt(0)] = 1;
for (const c of "/u") ESCAPES[c.charCodeAt(0)] = 2;

const isDigit = (byte: number | undefined): boolean => byte !== undefined && byte >= 0x30 && byte <= 0x39;
const isHex = (byte: number | undefined): boolean =>
  isDigit(byte) || (byte !== undefined && (byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);

export class Scanner {
  bytes: Buffer = Buffer.alloc(0);
  #stops = new Uint32Array(0);
  at = 0;
  end = 0;
  /** Of the last string: the bytes between its quotes, and whether they are what JSON.stringify would write. */
  start = 0;
  stop = 0;
  isCanonical = true;
  #depth = 0;

  begin({ bytes, stops }: MarkedBytes, at: number, end: number): void {
    this.bytes = bytes;
    this.#stops = stops;
    this.at = at;
    this.end = end;
    this.#depth = 0;
  }

  /** The byte after white space; -1 at the end. */
  peek(): number {
    const { bytes, end } = this;
    let at = this.at;
    while (at < end) {
      const byte = bytes[at] as number;
      if (byte !== 0x20 && byte !== 0x09 && byte !== 0x0a && byte !== 0x0d) break;
      at += 1;
    }
    this.at = at;
    return at < end ? (bytes[at] as number) : -1;
  }

  take(byte: number): boolean {
    if (this.peek() !== byte) return false;
    this.at += 1;
    return true;
  }

  /** A string; its span is then in `start`, `stop` and `isCanonical`. */
  string(): boolean {
    if (!this.take(QUOTE)) return false;
    const { bytes, end } = this;
    let at = this.at;
    this.start = at;
    this.isCanonical = true;
    for (; ; at += 1) {
      at = nextMark(this.#stops, at, end);
      if (at >= end) return false;
      const byte = bytes[at] as number;
      if (byte === QUOTE) {
        this.stop = at;
        this.at = at + 1;
        return true;
      }
      if (byte !== BACKSLASH) return false;
      at += 1;
      const kind = at < end ? ESCAPES[bytes[at] as number] : 0;
      if (kind === 0) return false;
      if (kind === 2) {
        this.isCanonical = false;
        if (bytes[at] === 0x75 && !this.#hex(at + 1)) return false;
      }
    }
  }

  #hex(at: number): boolean {
    const { bytes, end } = this;
    return at + 4 <= end && isHex(bytes[at]) && isHex(bytes[at + 1]) && isHex(bytes[at + 2]) && isHex(bytes[at + 3]);
  }

  /** Whether the last string is exactly this ASCII text. */
  is(text: string): boolean {
    const { bytes, start } = this;
    if (this.stop - start !== text.length) return false;
    for (let i = 0; i < text.length; i += 1) if (bytes[start + i] !== text.charCodeAt(i)) return false;
    return true;
  }

  /** The members of an object: `member` is called at each value with its key as the last string, and must pass it. */
  object(member: () => boolean): boolean {
    if (!this.take(OPEN_BRACE)) return false;
    if (this.take(CLOSE_BRACE)) return true;
    this.#depth += 1;
    if (this.#depth > MOST_DEPTH) return false;
    do {
      // A key in another spelling could be any key.
      if (!this.string() || !this.isCanonical || !this.take(COLON) || !member()) return false;
    } while (this.take(COMMA));
    this.#depth -= 1;
    return this.take(CLOSE_BRACE);
  }

  array(element: () => boolean): boolean {
    if (!this.take(OPEN_BRACKET)) return false;
    if (this.take(CLOSE_BRACKET)) return true;
    this.#depth += 1;
    if (this.#depth > MOST_DEPTH) return false;
    do {
      if (!element()) return false;
    } while (this.take(COMMA));
    this.#depth -= 1;
    return this.take(CLOSE_BRACKET);
  }

  /** Passes any value. */
  readonly skip = (): boolean => {
    const byte = this.peek();
    if (byte === QUOTE) return this.string();
    if (byte === OPEN_BRACE) return this.object(this.skip);
    if (byte === OPEN_BRACKET) return this.array(this.skip);
    if (byte === 0x6e) return this.#word("null");
    if (byte === 0x74) return this.#word("true");
    if (byte === 0x66) return this.#word("false");
    return this.#number();
  };

  /** Passes a null; false where something else stands, which is then still to be read. */
  isNull(): boolean {
    return this.peek() === 0x6e && this.#word("null");
  }

  #word(word: string): boolean {
    for (let i = 0; i < word.length; i += 1) if (this.bytes[this.at + i] !== word.charCodeAt(i)) return false;
    this.at += word.length;
    return this.at <= this.end;
  }

  #number(): boolean {
    const { bytes } = this;
    let at = this.at;
    if (bytes[at] === MINUS) at += 1;
    if (bytes[at] === 0x30) at += 1;
    else if (isDigit(bytes[at])) at = this.#digits(at);
    else return false;
    if (bytes[at] === DOT) {
      if (!isDigit(bytes[at + 1])) return false;
      at = this.#digits(at + 1);
    }
    if (at < this.end && ((bytes[at] as number) | 0x20) === 0x65) {
      at += bytes[at + 1] === 0x2b || bytes[at + 1] === MINUS ? 2 : 1;
      if (!isDigit(bytes[at])) return false;
      at = this.#digits(at);
    }
    this.at = at;
    return at <= this.end;
  }

  #digits(from: number): number {
    let at = from;
    while (isDigit(this.bytes[at])) at += 1;
    return at;
  }

  /** Whether only white space is left. */
  isDone(): boolean {
    return this.peek() < 0;
  }
}
