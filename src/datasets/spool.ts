/**
 * Rows that can only be chosen once all are known (the longest of growing conversations, a sample): they wait in a
 * temporary file, with a few bytes in memory for each, and are read once more in their order.
 */
import { closeSync, readSync, writeSync } from "node:fs";
import { type Key, KeySet, keyOf, type RowKeys } from "./keys.ts";
import type { Dedupe, ImportOptions } from "./options.ts";
import { openUnnamed } from "./unnamed.ts";

/** Rows that were read together: bytes of lines with their newlines, and for each row its line in the file. */
export interface SpooledRows {
  readonly file: string;
  /** The line before the one that `rowLines` counts from. */
  readonly lineBefore: number;
  readonly rows: Buffer;
  readonly rowLines: Uint32Array;
  readonly keys: RowKeys | undefined;
  readonly dedupe: Dedupe;
}

/** Why a row that was read does not come out. */
export type Drop = (reason: string, file: string, line: number) => void;

interface Batch extends Omit<SpooledRows, "rows" | "rowLines" | "keys"> {
  /** Number of its first row. */
  readonly first: number;
}

/** What is read back at once. */
const READ_BYTES = 1 << 20;

export class Spool {
  readonly #fd = openUnnamed();
  readonly #options: ImportOptions;
  readonly #beginnings = new KeySet();
  readonly #batches: Batch[] = [];
  /** By row: key of the whole conversation, bytes of its line with the newline, and its line in the batch. */
  #keys = new BigUint64Array(1 << 10);
  #lengths = new Uint32Array(1 << 10);
  #lines = new Uint32Array(1 << 10);
  #count = 0;

  constructor(options: ImportOptions) {
    this.#options = options;
  }

  add({ rows, rowLines, keys, ...batch }: SpooledRows): void {
    for (let at = 0; at < rows.length; ) at += writeSync(this.#fd, rows, at);
    this.#batches.push({ ...batch, first: this.#count });
    this.#reserve(rowLines.length);
    let start = 0;
    for (const [i, line] of rowLines.entries()) {
      const end = rows.indexOf(10, start) + 1;
      this.#keys[this.#count] = keys?.wholes[i] ?? 0n;
      this.#lengths[this.#count] = end - start;
      this.#lines[this.#count] = line;
      this.#count += 1;
      start = end;
    }
    if (keys && batch.dedupe === "prefix") for (const key of keys.beginnings) this.#beginnings.add(key);
  }

  #reserve(rows: number): void {
    if (this.#count + rows <= this.#keys.length) return;
    const size = Math.max(this.#keys.length * 2, this.#count + rows);
    const [keys, lengths, lines] = [new BigUint64Array(size), new Uint32Array(size), new Uint32Array(size)];
    keys.set(this.#keys);
    lengths.set(this.#lengths);
    lines.set(this.#lines);
    [this.#keys, this.#lengths, this.#lines] = [keys, lengths, lines];
  }

  /** The rows that are kept, at most `limit`, in order, as chunks of whole lines; `drop` is told why others are not. */
  *kept(drop: Drop, limit = Number.POSITIVE_INFINITY): Generator<{ readonly rows: Buffer; readonly count: number }> {
    const isKept = this.#choose(drop);
    let rest: Buffer = Buffer.alloc(0);
    let row = 0;
    let left = limit;
    for (let position = 0; row < this.#count && left > 0; ) {
      const chunk = Buffer.allocUnsafe(READ_BYTES);
      const length = readSync(this.#fd, chunk, 0, READ_BYTES, position);
      position += length;
      rest = rest.length > 0 ? Buffer.concat([rest, chunk.subarray(0, length)]) : chunk.subarray(0, length);
      let [start, end, count] = [0, 0, 0];
      for (; row < this.#count && left > 0; row += 1) {
        const next = end + (this.#lengths[row] as number);
        if (next > rest.length) break;
        if (isKept[row]) {
          count += 1;
          left -= 1;
        } else {
          if (count > 0) yield { rows: rest.subarray(start, end), count };
          [start, count] = [next, 0];
        }
        end = next;
      }
      if (count > 0) yield { rows: rest.subarray(start, end), count };
      rest = rest.subarray(end);
    }
  }

  /** One byte for each row: 1 where it is kept. */
  #choose(drop: Drop): Uint8Array {
    const isKept = new Uint8Array(this.#count).fill(1);
    const seen = new KeySet();
    const leaveOut = (row: number, { file, lineBefore }: Batch, reason: string): void => {
      isKept[row] = 0;
      drop(reason, file, lineBefore + (this.#lines[row] as number));
    };
    for (const [row, batch] of this.#rows()) {
      if (batch.dedupe === "none") continue;
      const key = this.#keys[row] as Key;
      if (batch.dedupe === "prefix" && this.#beginnings.has(key))
        leaveOut(row, batch, "the beginning of a longer conversation");
      else if (!seen.add(key)) leaveOut(row, batch, "equal to an earlier row");
    }
    const { sample } = this.#options;
    if (sample === undefined) return isKept;
    const last = this.#lastRank(isKept, sample);
    for (const [row, batch] of this.#rows())
      if (isKept[row] && !isBefore(this.#rank(row), row, last)) leaveOut(row, batch, "not in the sample");
    return isKept;
  }

  *#rows(): Generator<[row: number, batch: Batch]> {
    for (const [i, batch] of this.#batches.entries()) {
      const end = this.#batches[i + 1]?.first ?? this.#count;
      for (let row = batch.first; row < end; row += 1) yield [row, batch];
    }
  }

  /** A row's place in the draw: a hash of the seed and its content, the same wherever it stands. */
  #rank(row: number): Key {
    return keyOf(`${this.#options.seed ?? 0}:${this.#keys[row]}`);
  }

  /** The rank of the first row that is drawn no more; undefined where all are. */
  #lastRank(isKept: Uint8Array, size: number): Ranked | undefined {
    const candidates: Ranked[] = [];
    for (let row = 0; row < this.#count; row += 1) if (isKept[row]) candidates.push({ rank: this.#rank(row), row });
    candidates.sort((a, b) => (a.rank < b.rank ? -1 : a.rank > b.rank ? 1 : a.row - b.row));
    return candidates[size];
  }

  close(): void {
    closeSync(this.#fd);
  }
}

interface Ranked {
  readonly rank: Key;
  readonly row: number;
}

const isBefore = (rank: Key, row: number, last: Ranked | undefined): boolean =>
  last === undefined || rank < last.rank || (rank === last.rank && row < last.row);
