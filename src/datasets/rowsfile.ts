/** A file that is appended to and then read from its beginning, as often as wanted; its content may be moved towards its beginning. */
import { closeSync, ftruncateSync, readSync, writeSync } from "node:fs";
import { openUnnamed } from "./unnamed.ts";

/** What is read back at once. */
const READ_BYTES = 1 << 20;

export class RowsFile {
  readonly #fd: number;
  /** Byte of the file where this content begins. */
  readonly #base: number;
  readonly #isOwned: boolean;
  size = 0;

  private constructor(fd: number, base: number, isOwned: boolean) {
    this.#fd = fd;
    this.#base = base;
    this.#isOwned = isOwned;
  }

  /** A temporary file that nobody else sees. */
  static temporary(): RowsFile {
    return new RowsFile(openUnnamed(), 0, true);
  }

  /** An open file, to be read and written from byte `base` on, where it ends. It stays open. */
  static within(fd: number, base = 0): RowsFile {
    return new RowsFile(fd, base, false);
  }

  /** What is appended to this file from now on, as content of its own. */
  rest(): RowsFile {
    return RowsFile.within(this.#fd, this.#base + this.size);
  }

  append(content: NodeJS.ArrayBufferView): void {
    this.#write(content, this.size);
    this.size += content.byteLength;
  }

  #write({ buffer, byteOffset, byteLength }: NodeJS.ArrayBufferView, position: number): void {
    const bytes = new Uint8Array(buffer, byteOffset, byteLength);
    for (let at = 0; at < bytes.length; )
      at += writeSync(this.#fd, bytes, at, bytes.length - at, this.#base + position + at);
  }

  /** Puts what was read before to an earlier place. */
  move(content: NodeJS.ArrayBufferView, position: number): void {
    this.#write(content, position);
  }

  truncate(size: number): void {
    if (size === this.size) return;
    ftruncateSync(this.#fd, this.#base + size);
    this.size = size;
  }

  /** Pieces of the same size from a byte on, but for the last. Each has memory of its own. */
  *chunks(from = 0): Generator<Buffer<ArrayBuffer>> {
    for (let position = from; position < this.size; ) {
      const chunk = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, this.size - position));
      let length = 0;
      while (length < chunk.length) {
        const read = readSync(this.#fd, chunk, length, chunk.length - length, this.#base + position + length);
        if (read === 0) throw new Error("a temporary file is shorter than what was written to it");
        length += read;
      }
      position += length;
      yield chunk;
    }
  }

  close(): void {
    if (this.#isOwned) closeSync(this.#fd);
  }
}
