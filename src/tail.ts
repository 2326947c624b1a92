/** Text files that somebody else writes to, read as they grow. */
import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";

/** Reads whole lines: one that has only begun may go on as well as be cut off. */
export class LineTail {
  readonly #path: string;
  #offset: number;
  constructor(path: string, offset = 0) {
    this.#path = path;
    this.#offset = offset;
  }

  /**
   * What came since, nothing where there is no file; one that was put aside is read from its new beginning. `isOver`: nobody writes
   * any more, so what has only begun is all there is.
   */
  read(isOver = false): string {
    let fd: number;
    try {
      // Usually there is nothing new, and this is asked ten times a second for as long as a run takes.
      const { size } = statSync(this.#path);
      if (size < this.#offset) this.#offset = 0;
      if (size === this.#offset) return "";
      fd = openSync(this.#path, "r");
    } catch {
      return "";
    }
    try {
      const bytes = Buffer.alloc(Math.max(0, fstatSync(fd).size - this.#offset));
      const read = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, this.#offset));
      const end = isOver ? read.length : read.lastIndexOf(10) + 1;
      this.#offset += end;
      return read.toString("utf8", 0, end);
    } finally {
      closeSync(fd);
    }
  }
}
