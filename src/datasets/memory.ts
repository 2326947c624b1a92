/** Memory of blocks and of rows that was used and is free again: less to allocate, and to collect. */
import { BLOCK_BYTES } from "./blocks.ts";

/** What a block takes at most, unless a line is longer. */
const USUAL_BYTES = 2 * BLOCK_BYTES;
/** Pieces of free memory of each kind that are kept. */
const MOST_FREE = 8;

export class BlockMemory {
  readonly #blocks: ArrayBuffer[] = [];
  readonly #rows: ArrayBuffer[] = [];

  /** Memory for a block. */
  readonly allocate = (bytes: number): Buffer => {
    if (bytes < BLOCK_BYTES) return Buffer.allocUnsafeSlow(bytes);
    const free = this.#blocks.pop();
    return free && free.byteLength >= bytes ? Buffer.from(free) : Buffer.allocUnsafeSlow(Math.max(bytes, USUAL_BYTES));
  };

  /** Memory that rows may be written to, if there is some. */
  forRows(): ArrayBuffer | undefined {
    return this.#rows.pop();
  }

  /** Takes back the memory of a block that was read. */
  releaseBlock({ buffer }: Uint8Array): void {
    this.#release(this.#blocks, buffer as ArrayBuffer);
  }

  /** Takes back the memory of rows that nobody looks at any more. */
  releaseRows({ buffer }: Uint8Array): void {
    this.#release(this.#rows, buffer as ArrayBuffer);
  }

  #release(free: ArrayBuffer[], memory: ArrayBuffer): void {
    if (memory.byteLength >= BLOCK_BYTES && free.length < MOST_FREE) free.push(memory);
  }
}
