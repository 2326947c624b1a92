/** Joins the two sides of batch files, which stand on lines of their own and often in files of their own. */
import { closeSync, mkdtempSync, openSync, readSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Half } from "./format.ts";

/** Waiting halves beyond this many characters go to a file. */
const MOST_IN_MEMORY = 32 * 2 ** 20;

type Kept = { readonly side: Half["side"]; readonly file: string } & (
  | { readonly text: string }
  | { readonly offset: number; readonly length: number }
);

export interface Pair {
  readonly request: unknown;
  readonly result: unknown;
}

export class HalfStore {
  readonly #kept = new Map<string, Kept>();
  #inMemory = 0;
  #spill: { readonly folder: string; readonly fd: number; size: number } | undefined;

  /** The pair, if this half completes one; `repeated` where its side is there already. */
  add(half: Half, file: string): Pair | "repeated" | undefined {
    const other = this.#kept.get(half.key);
    if (!other) {
      this.#keep(half, file);
      return undefined;
    }
    if (other.side === half.side) return "repeated";
    this.#kept.delete(half.key);
    const body = JSON.parse(this.#textOf(other)) as unknown;
    return half.side === "result" ? { request: body, result: half.body } : { request: half.body, result: body };
  }

  /** Halves that found no other, by file. */
  *left(): Generator<{ readonly side: Half["side"]; readonly file: string }> {
    yield* this.#kept.values();
  }

  #keep({ key, side, body }: Half, file: string): void {
    const text = JSON.stringify(body ?? null);
    if (this.#inMemory + text.length <= MOST_IN_MEMORY) {
      this.#inMemory += text.length;
      this.#kept.set(key, { side, file, text });
      return;
    }
    this.#spill ??= openSpill();
    const bytes = Buffer.from(text);
    writeSync(this.#spill.fd, bytes, 0, bytes.length, this.#spill.size);
    this.#kept.set(key, { side, file, offset: this.#spill.size, length: bytes.length });
    this.#spill.size += bytes.length;
  }

  #textOf(kept: Kept): string {
    if ("text" in kept) {
      this.#inMemory -= kept.text.length;
      return kept.text;
    }
    const bytes = Buffer.alloc(kept.length);
    readSync(this.#spill?.fd as number, bytes, 0, kept.length, kept.offset);
    return bytes.toString();
  }

  close(): void {
    if (!this.#spill) return;
    closeSync(this.#spill.fd);
    rmSync(this.#spill.folder, { recursive: true, force: true });
    this.#spill = undefined;
  }
}

function openSpill(): { folder: string; fd: number; size: number } {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-import-"));
  return { folder, fd: openSync(join(folder, "halves"), "wx+", 0o600), size: 0 };
}
