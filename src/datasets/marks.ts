/**
 * Bytes in the kernels' memory with marks on those that matter: where a string can stop, and where something to redact
 * may be. What lies between two marks is passed over without being looked at.
 */
import { type Kernels, openKernels, pairTables, TABLE_BYTES } from "./kernels.ts";

const PAGE = 1 << 16;
/** Room after the bytes, which kernels and readers may look into. */
const PAD = 64;
const TABLES = 2 * TABLE_BYTES;

/** What ends or breaks a run of plain characters in a JSON string: a quote, a backslash, a control character. */
const ALL = Array.from({ length: 16 }, (_, i) => i);
const STOPS = pairTables([
  { byte: { low: [2], high: [2] }, next: "any" },
  { byte: { low: [12], high: [5] }, next: "any" },
  { byte: { low: ALL, high: [0, 1] }, next: "any" },
]);

export class MarkedBytes {
  /** The bytes; beyond `length` there is room. Good until the next `take` or `encode`. */
  bytes: Buffer = Buffer.alloc(0);
  length = 0;
  /** A bit for each byte, least significant first. */
  stops = new Uint32Array(0);
  /** The same for the pairs that were given; empty without. */
  points = new Uint32Array(0);
  readonly #kernels: Kernels = openKernels();
  readonly #pairs: Uint8Array | undefined;
  #capacity = 0;

  /** `pairs`: tables of what is marked in `points`. */
  constructor(pairs?: Uint8Array) {
    this.#pairs = pairs;
  }

  /** Copies bytes in and marks them. */
  take(source: Uint8Array): void {
    this.#reserve(source.length);
    this.bytes.set(source);
    this.#mark(source.length);
  }

  /** The UTF-8 of a text. Lone surrogates become U+FFFD, as they do in files. */
  encode(text: string): void {
    this.#reserve(text.length * 3);
    this.#mark(this.bytes.write(text, 0));
  }

  /** Makes room for so many bytes, of which there are none yet; `append` adds to them without marks. */
  clear(room: number): void {
    this.#reserve(room);
    this.length = 0;
  }

  append(source: Uint8Array, start: number, end: number): void {
    this.bytes.set(source.subarray(start, end), this.length);
    this.length += end - start;
  }

  /** At most three bytes for each UTF-16 unit. */
  appendText(text: string): void {
    this.length += this.bytes.write(text, this.length);
  }

  /** XXH64 of bytes [start, end). */
  hash(start: number, end: number, seed: bigint): bigint {
    return this.#kernels.hash(TABLES + start, end - start, seed);
  }

  #mark(length: number): void {
    this.length = length;
    const first = TABLES + this.#capacity + PAD;
    this.#kernels.mark(TABLES, TABLES + length, first, 0);
    if (this.#pairs) this.#kernels.mark(TABLES, TABLES + length, first + this.#capacity / 8 + PAD, TABLE_BYTES);
  }

  #reserve(count: number): void {
    if (count <= this.#capacity && this.#capacity > 0) return;
    const capacity = Math.max(PAGE, 2 ** Math.ceil(Math.log2(count + 1)));
    const needed = TABLES + capacity + PAD + (capacity / 8 + PAD) * 2;
    const { memory } = this.#kernels;
    memory.grow(Math.max(0, Math.ceil((needed - memory.buffer.byteLength) / PAGE)));
    this.#capacity = capacity;
    const first = TABLES + capacity + PAD;
    this.bytes = Buffer.from(memory.buffer, TABLES, capacity + PAD);
    this.stops = new Uint32Array(memory.buffer, first, capacity / 32 + 1);
    if (this.#pairs) this.points = new Uint32Array(memory.buffer, first + capacity / 8 + PAD, capacity / 32 + 1);
    const tables = new Uint8Array(memory.buffer, 0, TABLES);
    tables.set(STOPS);
    if (this.#pairs) tables.set(this.#pairs, TABLE_BYTES);
  }
}

/** The first marked byte at `from` or after it and before `end`; `end` if there is none. */
export function nextMark(marks: Uint32Array, from: number, end: number): number {
  if (from >= end) return end;
  let word = from >>> 5;
  let bits = (marks[word] as number) & (-1 << (from & 31));
  for (const last = (end - 1) >>> 5; bits === 0; bits = marks[word] as number) {
    word += 1;
    if (word > last) return end;
  }
  const at = (word << 5) + 31 - Math.clz32(bits & -bits);
  return Math.min(at, end);
}
