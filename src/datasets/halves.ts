/** Joins the two sides of batch files, which stand on lines of their own and often in files of their own. */
import { closeSync, readSync, writeSync } from "node:fs";
import type { Half } from "./format.ts";
import { openUnnamed } from "./unnamed.ts";

/** Waiting halves beyond this many characters go to a file. */
const MOST_IN_MEMORY = 32 * 2 ** 20;

/** A half's line: file, and number from 1. */
export interface HalfPlace {
  readonly file: string;
  readonly line: number;
}

type Kept = { readonly side: Half["side"]; readonly place: HalfPlace } & (
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
  #spill: { readonly fd: number; size: number } | undefined;

  /** The pair, if this half completes one; `repeated` where its side is there already. */
  add(half: Half, place: HalfPlace): Pair | "repeated" | undefined {
    const other = this.#kept.get(half.key);
    if (!other) {
      this.#keep(half, place);
      return undefined;
    }
    if (other.side === half.side) return "repeated";
    this.#kept.delete(half.key);
    const body = JSON.parse(this.#textOf(other)) as unknown;
    return half.side === "result" ? { request: body, result: half.body } : { request: half.body, result: body };
  }

  /** Halves that found no other. */
  *left(): Generator<{ readonly side: Half["side"]; readonly place: HalfPlace }> {
    yield* this.#kept.values();
  }

  #keep({ key, side, body }: Half, place: HalfPlace): void {
    const text = JSON.stringify(body ?? null);
    if (this.#inMemory + text.length <= MOST_IN_MEMORY) {
      this.#inMemory += text.length;
      this.#kept.set(key, { side, place, text });
      return;
    }
    this.#spill ??= { fd: openUnnamed(), size: 0 };
    const bytes = Buffer.from(text);
    writeSync(this.#spill.fd, bytes, 0, bytes.length, this.#spill.size);
    this.#kept.set(key, { side, place, offset: this.#spill.size, length: bytes.length });
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
    this.#spill = undefined;
  }
}
