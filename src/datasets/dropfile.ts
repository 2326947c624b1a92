/** A file of the lines that an import left out, one JSON object each. It appears whole with `finish`, or not at all. */
import { closeSync, fsyncSync, mkdirSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { temporaryName } from "../files.ts";
import type { DroppedLine } from "./tally.ts";

const HELD_CHARACTERS = 1 << 16;

export class DropFile {
  readonly #path: string;
  readonly #temporary: string;
  #fd: number | undefined;
  #held = "";

  /** Throws what the file system says, as all methods do. */
  constructor(path: string) {
    this.#path = path;
    this.#temporary = temporaryName(path);
    mkdirSync(dirname(path), { recursive: true });
    this.#fd = openSync(this.#temporary, "wx");
  }

  add({ file, line, column, kind, reason, excerpt }: DroppedLine): void {
    this.#held += `${JSON.stringify({ file, line, column, kind, reason, excerpt })}\n`;
    if (this.#held.length >= HELD_CHARACTERS) this.#flush();
  }

  #flush(): void {
    const bytes = Buffer.from(this.#held);
    this.#held = "";
    for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd as number, bytes, at);
  }

  finish(): void {
    this.#flush();
    fsyncSync(this.#fd as number);
    renameSync(this.#temporary, this.#path);
  }

  /** Leaves nothing of what was not finished. */
  close(): void {
    if (this.#fd === undefined) return;
    closeSync(this.#fd);
    this.#fd = undefined;
    rmSync(this.#temporary, { force: true });
  }
}
