/**
 * Rows that can only be chosen once all are known (the longest of growing conversations, a sample): they wait in a
 * temporary file, with a few bytes in memory for each, and are read once more in their order.
 */

import { createHash } from "node:crypto";
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConversationKeys, type Key, KeySet } from "./keys.ts";
import type { ImportOptions } from "./options.ts";

export class Spool {
  readonly #folder = mkdtempSync(join(tmpdir(), "rlcli-import-"));
  readonly #path = join(this.#folder, "rows");
  readonly #fd = openSync(this.#path, "wx", 0o600);
  readonly #options: ImportOptions;
  readonly #beginnings = new KeySet();
  /** By row: key of the whole conversation, and bytes of its line with the newline. */
  #keys = new BigUint64Array(1 << 10);
  #lengths = new Uint32Array(1 << 10);
  #count = 0;

  constructor(options: ImportOptions) {
    this.#options = options;
  }

  /** Rows as lines with their newlines, and the keys of each. */
  add(rows: Buffer, keys: readonly ConversationKeys[]): void {
    for (let at = 0; at < rows.length; ) at += writeSync(this.#fd, rows, at);
    let start = 0;
    for (const { whole, beginnings } of keys) {
      const end = rows.indexOf(10, start) + 1;
      this.#push(whole, end - start);
      start = end;
      if (this.#options.dedupe === "prefix") for (const key of beginnings) this.#beginnings.add(key);
    }
  }

  #push(key: Key, length: number): void {
    if (this.#count === this.#keys.length) {
      const [keys, lengths] = [new BigUint64Array(this.#count * 2), new Uint32Array(this.#count * 2)];
      keys.set(this.#keys);
      lengths.set(this.#lengths);
      [this.#keys, this.#lengths] = [keys, lengths];
    }
    this.#keys[this.#count] = key;
    this.#lengths[this.#count] = length;
    this.#count += 1;
  }

  /** The rows that are kept, in order, a line at a time; `drop` is told why others are not. */
  async *kept(drop: (reason: string) => void): AsyncGenerator<Buffer> {
    const isKept = this.#choose(drop);
    let row = 0;
    let rest: Buffer = Buffer.alloc(0);
    for await (const chunk of createReadStream(this.#path, { highWaterMark: 1 << 20 })) {
      rest = rest.length > 0 ? Buffer.concat([rest, chunk as Buffer]) : (chunk as Buffer);
      for (; row < this.#count && rest.length >= (this.#lengths[row] as number); row += 1) {
        const length = this.#lengths[row] as number;
        if (isKept[row]) yield rest.subarray(0, length);
        rest = rest.subarray(length);
      }
    }
  }

  /** One byte for each row: 1 where it is kept. */
  #choose(drop: (reason: string) => void): Uint8Array {
    const isKept = new Uint8Array(this.#count).fill(1);
    const seen = new KeySet();
    for (let row = 0; row < this.#count && this.#options.dedupe; row += 1) {
      const key = this.#keys[row] as Key;
      const isPart = this.#beginnings.has(key);
      if (!isPart && seen.add(key)) continue;
      isKept[row] = 0;
      drop(isPart ? "the beginning of a longer conversation" : "equal to an earlier row");
    }
    if (this.#options.sample !== undefined) this.#sample(isKept, this.#options.sample, drop);
    return isKept;
  }

  /** Keeps the rows with the smallest hashes of seed and content: the same ones in whatever order they stand. */
  #sample(isKept: Uint8Array, size: number, drop: (reason: string) => void): void {
    const seed = this.#options.seed ?? 0;
    const ranks = new BigUint64Array(this.#count);
    const candidates: number[] = [];
    for (let row = 0; row < this.#count; row += 1) {
      if (!isKept[row]) continue;
      ranks[row] = createHash("sha1").update(`${seed}:${this.#keys[row]}`).digest().readBigUInt64LE(0);
      candidates.push(row);
    }
    candidates.sort((a, b) => {
      const [x, y] = [ranks[a] as bigint, ranks[b] as bigint];
      return x < y ? -1 : x > y ? 1 : a - b;
    });
    for (const row of candidates.slice(size)) {
      isKept[row] = 0;
      drop("not in the sample");
    }
  }

  close(): void {
    closeSync(this.#fd);
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
