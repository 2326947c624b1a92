/** A file of lines that is read by place: memory does not grow with the file. */
import { closeSync, openSync, readSync } from "node:fs";
import { open } from "node:fs/promises";
import { splitLines } from "./lines.ts";

/** Every line with its number from 1. Rejects with what the file system says. */
export async function* fileLines(path: string): AsyncGenerator<{ line: number; bytes: Buffer }> {
  const file = await open(path);
  yield* splitLines(file.createReadStream({ highWaterMark: 1 << 18 }));
}

/** An open file, read a stretch at a time. */
export class LineFile {
  readonly path: string;
  readonly #fd: number;

  constructor(path: string) {
    this.path = path;
    this.#fd = openSync(path, "r");
  }

  /** `length` bytes from `offset` on; throws where the file is shorter. */
  read(offset: number, length: number): Buffer {
    const bytes = Buffer.allocUnsafe(length);
    for (let at = 0; at < length; ) {
      const got = readSync(this.#fd, bytes, at, length - at, offset + at);
      if (got === 0) throw new Error(`it ends at byte ${offset + at}`);
      at += got;
    }
    return bytes;
  }

  close(): void {
    closeSync(this.#fd);
  }
}
