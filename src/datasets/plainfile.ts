/**
 * A file in which lines of UTF-8 stand as they are, neither compressed nor in another encoding. Its blocks are read straight
 * into the memory that threads get, so that no byte is copied on the way. What has to be decoded comes as a stream (decode.ts).
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { type Allocate, BLOCK_BYTES, type Block } from "./blocks.ts";
import { byteOrderMarkBytes, isEncoded } from "./decode.ts";

const NEWLINE = 10;
/** Enough for magic numbers. */
const MAGIC_BYTES = 4;

export class PlainFile {
  readonly #fd: number;
  readonly #first: number;
  readonly #onError: (error: unknown) => never;

  /** Bytes, when it was opened. */
  readonly size: number;

  private constructor(fd: number, first: number, onError: (error: unknown) => never) {
    this.size = fstatSync(fd).size;
    this.#fd = fd;
    this.#first = first;
    this.#onError = onError;
  }

  /** Undefined where the file has to be decoded. `onError` is told why it cannot be read, and throws. */
  static open(path: string, onError: (error: unknown) => never): PlainFile | undefined {
    let fd: number;
    try {
      fd = openSync(path, "r");
    } catch (error) {
      onError(error);
    }
    try {
      const magic = Buffer.alloc(MAGIC_BYTES, 1);
      readSync(fd, magic, 0, MAGIC_BYTES, 0);
      if (!isEncoded(magic)) return new PlainFile(fd, byteOrderMarkBytes(magic), onError);
    } catch (error) {
      closeSync(fd);
      onError(error);
    }
    closeSync(fd);
    return undefined;
  }

  /** Fills `into` as far as the file goes. */
  #read(into: Buffer, position: number): number {
    try {
      let length = 0;
      for (let got = -1; got !== 0 && length < into.length; length += got)
        got = readSync(this.#fd, into, length, into.length - length, position + length);
      return length;
    } catch (error) {
      return this.#onError(error);
    }
  }

  /** The beginning: so many bytes, or more until a line is whole, which is not looked for beyond `maxBytes`. */
  head(bytes: number, maxBytes: number): Buffer {
    for (let size = bytes; ; size *= 2) {
      const head = Buffer.allocUnsafeSlow(size);
      const found = head.subarray(0, this.#read(head, this.#first));
      if (found.length < size || size >= maxBytes || found.includes(NEWLINE)) return found;
    }
  }

  /** As `lineBlocks`. */
  *blocks(maxLineBytes: number, allocate: Allocate, blockBytes = BLOCK_BYTES): Generator<Block> {
    let position = this.#first;
    /** The beginning of a line whose end is not read yet. */
    let begun: Buffer = Buffer.alloc(0);
    let isSkipping = false;
    for (;;) {
      const before = begun.length;
      // Twice as much each time, so that a long line is not copied over and over.
      const room = before + Math.max(blockBytes, before);
      const memory = allocate(room);
      begun.copy(memory);
      const got = this.#read(memory.subarray(before, room), position);
      position += got;
      const length = before + got;
      if (got === 0) {
        if (length > 0 && !isSkipping) yield { bytes: memory.subarray(0, length), overlong: 0 };
        return;
      }
      const last = memory.subarray(before, length).lastIndexOf(NEWLINE);
      const end = last < 0 ? 0 : before + last + 1;
      const start = isSkipping && last >= 0 ? memory.indexOf(NEWLINE) + 1 : 0;
      if (last >= 0) isSkipping = false;
      else if (!isSkipping && length > maxLineBytes) {
        isSkipping = true;
        yield { bytes: Buffer.alloc(0), overlong: 1 };
      }
      begun = isSkipping ? Buffer.alloc(0) : Buffer.from(memory.subarray(end, length));
      if (end > start) yield { bytes: memory.subarray(start, end), overlong: 0 };
    }
  }

  close(): void {
    closeSync(this.#fd);
  }
}
