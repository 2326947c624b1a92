/** Rows as bytes, one after another: text is encoded and spans are copied straight to where they will be written from. */
const FIRST_BYTES = 1 << 16;

export class RowBuffer {
  #bytes: Buffer;
  #length = 0;

  constructor(size = FIRST_BYTES) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
  }

  get length(): number {
    return this.#length;
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

  /** Bytes [start, end) of `source`. */
  copy(source: Buffer, start: number, end: number): void {
    this.#reserve(end - start);
    this.#length += source.copy(this.#bytes, this.#length, start, end);
  }

  /** What was written from a byte on. Good until the next write. */
  since(start: number): Buffer {
    return this.#bytes.subarray(start, this.#length);
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
