/**
 * Bytes in the kernels' memory with marks on those that matter: where a string can stop, and where something to redact
 * may be. What lies between two marks is passed over without being looked at.
 */
import { type Kernels, openKernels } from "./kernels.ts";

const PAGE = 1 << 16;
/** Room after bytes, which kernels and readers may look into. */
export const PAD = 64;
/** Memory before the bytes: tables, then what `SpanMemory` keeps there. */
export const FIRST_BYTE = 512;

export class MarkedBytes {
  /** The bytes; beyond `length` there is room. Good until the next `take` or `encode`. */
  bytes: Buffer = Buffer.alloc(0);
  length = 0;
  /** A bit for each byte, least significant first. */
  stops = new Uint32Array(0);
  /** The same for the pairs that were given; empty without. */
  points = new Uint32Array(0);
  protected readonly kernels: Kernels = openKernels();
  /** Address after bytes and marks. */
  protected rest = FIRST_BYTE;
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

  /** XXH64 of bytes [start, end). */
  hash(start: number, end: number, seed: bigint): bigint {
    return this.kernels.hash(FIRST_BYTE + start, end - start, seed);
  }

  #mark(length: number): void {
    this.length = length;
    const [from, to] = [FIRST_BYTE, FIRST_BYTE + length];
    const stops = FIRST_BYTE + this.#capacity + PAD;
    if (this.#pairs) this.kernels.mark(from, to, stops, stops + this.#capacity / 8 + PAD, 0);
    else this.kernels.markStops(from, to, stops);
  }

  #reserve(count: number): void {
    if (count <= this.#capacity && this.#capacity > 0) return;
    const capacity = Math.max(PAGE, 2 ** Math.ceil(Math.log2(count + 1)));
    this.#capacity = capacity;
    this.rest = FIRST_BYTE + capacity + PAD + (capacity / 8 + PAD) * 2;
    this.grow(this.rest);
  }

  /** Makes the memory as large as that. */
  protected grow(size: number): void {
    const { memory } = this.kernels;
    memory.grow(Math.max(0, Math.ceil((size - memory.buffer.byteLength) / PAGE)));
    this.view(memory.buffer);
  }

  /** Looks at memory that has grown; what looked at it before sees nothing any more. */
  protected view(memory: ArrayBuffer): void {
    const capacity = this.#capacity;
    const first = FIRST_BYTE + capacity + PAD;
    this.bytes = Buffer.from(memory, FIRST_BYTE, capacity + PAD);
    this.stops = new Uint32Array(memory, first, capacity / 32 + 1);
    if (!this.#pairs) return;
    this.points = new Uint32Array(memory, first + capacity / 8 + PAD, capacity / 32 + 1);
    new Uint8Array(memory).set(this.#pairs);
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
