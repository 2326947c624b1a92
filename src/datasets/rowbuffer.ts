/** Rows as bytes, one after another: text is encoded and spans are copied straight to where they will be written from. */
const FIRST_BYTES = 1 << 16;

export class RowBuffer {
  #bytes: Buffer;
  #length = 0;

  constructor(size = FIRST_BYTES) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  text(text: string): void {
    // No UTF-16 unit takes more than three bytes.
    this.#reserve(text.length * 3);
    this.#length += this.#bytes.write(text, this.#length);
  }

  ascii(text: string): void {
    this.#reserve(text.length);
    this.#length += this.#bytes.write(text, this.#length, "latin1");
  }

  /** Over memory that was used before. */
  static over(memory: ArrayBuffer): RowBuffer {
    const made = new RowBuffer(0);
    made.#bytes = Buffer.from(memory);
    return made;
  }

  /** A few bytes, for which a call out of JavaScript takes longer than a loop. */
  short(bytes: Uint8Array): void {
    this.#reserve(bytes.length);
    const [into, at] = [this.#bytes, this.#length];
    for (let i = 0; i < bytes.length; i += 1) into[at + i] = bytes[i] as number;
    this.#length = at + bytes.length;
  }

  /** Bytes [start, end) of `source`. */
  copy(source: Buffer, start: number, end: number): void {
    this.#reserve(end - start);
    this.#length += source.copy(this.#bytes, this.#length, start, end);
  }

  /** All that was written. The memory is the caller's: it is no part of a pool. */
  take(): Buffer {
    return this.#bytes.subarray(0, this.#length);
  }

  #reserve(count: number): void {
    if (this.#length + count <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.#bytes.length * 2, this.#length + count));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}
