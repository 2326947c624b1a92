/** Rows as bytes, one after another: text is encoded and spans are copied straight to where they will be written from. */
const FIRST_BYTES = 1 << 16;
/** Rows of a block seldom take more. */
const USUAL_BYTES = 1 << 20;

export class RowBuffer {
  /** Bytes that are written. */
  length = 0;
  #bytes: Buffer;
  readonly #grow: ((bytes: number) => void) | undefined;

  /** `grow`: makes room in memory that is somebody else's, and tells so by `stand`. */
  constructor(size = FIRST_BYTES, grow?: (bytes: number) => void) {
    this.#bytes = Buffer.allocUnsafeSlow(size);
    this.#grow = grow;
  }

  /** Over memory that was used before. */
  static over(memory: ArrayBuffer): RowBuffer {
    const made = new RowBuffer(0);
    made.#bytes = Buffer.from(memory);
    return made;
  }

  /** Where the bytes are from now on. */
  stand(bytes: Buffer): void {
    this.#bytes = bytes;
  }

  text(text: string): void {
    // No UTF-16 unit takes more than three bytes.
    this.reserve(text.length * 3);
    this.length += this.#bytes.write(text, this.length);
  }

  byte(byte: number): void {
    this.reserve(1);
    this.#bytes[this.length] = byte;
    this.length += 1;
  }

  /** All that was written, in memory that is the caller's: `spare` where that is given and large enough. What comes next begins anew. */
  take(spare?: ArrayBuffer): Buffer {
    const { length } = this;
    this.length = 0;
    if (!this.#grow) return this.#bytes.subarray(0, length);
    const isEnough = spare !== undefined && spare.byteLength >= length;
    // Of a usual size, so that it can be used for other rows when these are written.
    const memory = isEnough ? Buffer.from(spare) : Buffer.allocUnsafeSlow(Math.max(length, USUAL_BYTES));
    this.#bytes.copy(memory, 0, 0, length);
    return memory.subarray(0, length);
  }

  /** Room for so many bytes more. */
  reserve(count: number): void {
    if (this.length + count <= this.#bytes.length) return;
    const size = Math.max(this.#bytes.length * 2, this.length + count);
    if (this.#grow) this.#grow(size);
    else {
      const larger = Buffer.allocUnsafeSlow(size);
      this.#bytes.copy(larger, 0, 0, this.length);
      this.#bytes = larger;
    }
  }
}
