/** A file that is appended to and then read from its beginning, as often as wanted; its content may be moved towards its beginning. */
import { closeSync, fdatasync, ftruncateSync, readSync, writeSync } from "node:fs";
import { openUnnamed } from "./unnamed.ts";

/** What is read back at once. */
const READ_BYTES = 1 << 20;

/** So much is written before the disk is asked to begin with it. */
const FLUSH_BYTES = 1 << 25;

/** Sends what was written to the disk while more is made, so that little is left to wait for at the end. */
class Flusher {
  readonly #fd: number;
  #waiting = 0;
  #flush: Promise<void> | undefined;

  constructor(fd: number) {
    this.#fd = fd;
  }

  wrote(bytes: number): void {
    this.#waiting += bytes;
    if (this.#waiting < FLUSH_BYTES || this.#flush) return;
    this.#waiting = 0;
    this.#flush = new Promise((resolve) => {
      // What failed fails once more when the whole file is made durable.
      fdatasync(this.#fd, () => {
        this.#flush = undefined;
        resolve();
      });
    });
  }

  async idle(): Promise<void> {
    await this.#flush;
  }
}

export class RowsFile {
  readonly #fd: number;
  /** Byte of the file where this content begins. */
  readonly #base: number;
  /** Of a file that is to stay. */
  readonly #flusher: Flusher | undefined;
  size = 0;

  private constructor(fd: number, base: number, flusher: Flusher | undefined) {
    this.#fd = fd;
    this.#base = base;
    this.#flusher = flusher;
  }

  /** A temporary file that nobody else sees. */
  static temporary(): RowsFile {
    return new RowsFile(openUnnamed(), 0, undefined);
  }

  /** An open file, empty and to be read and written. It stays open, and is not to be closed before `idle`. */
  static within(fd: number): RowsFile {
    return new RowsFile(fd, 0, new Flusher(fd));
  }

  /** What is appended to this file from now on, as content of its own. */
  rest(): RowsFile {
    return new RowsFile(this.#fd, this.#base + this.size, this.#flusher);
  }

  append(content: NodeJS.ArrayBufferView): void {
    this.#write(content, this.size);
    this.size += content.byteLength;
    this.#flusher?.wrote(content.byteLength);
  }

  /** When nothing is under way. */
  async idle(): Promise<void> {
    await this.#flusher?.idle();
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
    for (let position = from; position < this.size; position += READ_BYTES)
      yield this.read(position, Math.min(READ_BYTES, this.size - position));
  }

  /** So many bytes from a byte on, in memory of their own. */
  read(position: number, length: number): Buffer<ArrayBuffer> {
    const bytes = Buffer.allocUnsafeSlow(length);
    for (let at = 0; at < length; ) {
      const got = readSync(this.#fd, bytes, at, length - at, this.#base + position + at);
      if (got === 0) throw new Error("a temporary file is shorter than what was written to it");
      at += got;
    }
    return bytes;
  }

  /** What is not temporary stays open. */
  close(): void {
    if (!this.#flusher) closeSync(this.#fd);
  }
}
