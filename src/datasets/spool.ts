/**
 * Rows that can only be chosen once all are known (the longest of growing conversations, a sample): they wait in a
 * temporary file and are read once more in their order. Their keys wait in files too and are compared a part at a time, so
 * that memory is for a part of the keys and one byte a row.
 */
import { KeySet, keyOf, type RowKeys } from "./keys.ts";
import { SetReader } from "./near/sets.ts";
import { DEFAULT_NEAR_THRESHOLD, type Dedupe, type ImportOptions } from "./options.ts";
import { RowsFile } from "./rowsfile.ts";

/** Rows that were read together: bytes of lines with their newlines, and for each row its line in the file. */
export interface SpooledRows {
  readonly file: string;
  /** The line before the one that `rowLines` counts from. */
  readonly lineBefore: number;
  readonly rows: Buffer;
  readonly rowLines: Uint32Array;
  readonly keys: RowKeys | undefined;
  /** What near duplicates are told by (near/sets.ts). */
  readonly sets: Uint32Array | undefined;
  readonly dedupe: Dedupe;
}

/** Whole lines of rows, one after another. */
export interface KeptRows {
  readonly rows: Buffer;
  readonly count: number;
}

/** Why a row that was read does not come out. */
export type Drop = (reason: string, file: string, line: number) => void;

interface Batch extends Omit<SpooledRows, "rows" | "rowLines" | "keys" | "sets"> {
  /** Number of its first row. */
  readonly first: number;
}

/** Rows of one batch that follow each other in the ledger. */
interface Stretch {
  readonly batch: Batch;
  /** Number of the first. */
  readonly row: number;
  /** `WORDS` for each. */
  readonly words: Uint32Array;
}

/** What becomes of a row. */
const FATES = [
  "kept",
  "the beginning of a longer conversation",
  "equal to an earlier row",
  "nearly equal to an earlier row",
  "not in the sample",
];
const [KEPT, BEGINNING, EQUAL, NEAR, NOT_DRAWN] = [0, 1, 2, 3, 4];

/** A row in the ledger: its key (two words), bytes of its line with the newline, its line in the batch. */
const WORDS = 4;
/** Keys compared at once; more are divided by their upper halves. */
const KEYS_AT_ONCE = 1 << 21;

export class Spool {
  readonly #rows: RowsFile;
  readonly #ledger = RowsFile.temporary();
  readonly #beginnings = RowsFile.temporary();
  /** Of every row in order, where near duplicates are left out. */
  #sets: RowsFile | undefined;
  readonly #options: ImportOptions;
  readonly #keysAtOnce: number;
  readonly #batches: Batch[] = [];
  #count = 0;

  /** `rows`: where rows wait. */
  constructor(options: ImportOptions, keysAtOnce = KEYS_AT_ONCE, rows = RowsFile.temporary()) {
    this.#rows = rows;
    this.#options = options;
    this.#keysAtOnce = keysAtOnce;
  }

  add({ rows, rowLines, keys, sets, ...batch }: SpooledRows): void {
    this.#rows.append(rows);
    this.#batches.push({ ...batch, first: this.#count });
    const ledger = new Uint32Array(rowLines.length * WORDS);
    const words = keys && new Uint32Array(keys.wholes.buffer, keys.wholes.byteOffset, keys.wholes.length * 2);
    let start = 0;
    for (let i = 0; i < rowLines.length; i += 1) {
      const end = rows.indexOf(10, start) + 1;
      const at = i * WORDS;
      ledger[at] = words?.[2 * i] ?? 0;
      ledger[at + 1] = words?.[2 * i + 1] ?? 0;
      ledger[at + 2] = end - start;
      ledger[at + 3] = rowLines[i] as number;
      start = end;
    }
    this.#ledger.append(ledger);
    this.#count += rowLines.length;
    if (sets) {
      this.#sets ??= RowsFile.temporary();
      this.#sets.append(sets);
    }
    if (keys && mergesGrowing(batch)) this.#beginnings.append(keys.beginnings);
  }

  /** The rows that are kept, at most `limit`, in order, as chunks of whole lines; `drop` is told why others are not. */
  kept(drop: Drop, limit = Number.POSITIVE_INFINITY): Generator<KeptRows> {
    return this.#kept(this.#choose(), drop, limit);
  }

  /** Leaves in the rows' file those that are kept, at most `limit`; tells how many, some at a time. Ends when all are in place. */
  *settle(drop: Drop, limit = Number.POSITIVE_INFINITY): Generator<number> {
    const fates = this.#choose();
    // What stands before the first row to go stays where it is.
    let [rows, end] = [0, 0];
    settled: for (const { words } of this.#stretches())
      for (let at = 0; at < words.length; at += WORDS) {
        if (fates[rows] !== KEPT || rows >= limit) break settled;
        rows += 1;
        end += words[at + 2] as number;
      }
    yield rows;
    if (end < this.#rows.size)
      for (const more of this.#kept(fates, drop, limit - rows, rows, end)) {
        this.#rows.move(more.rows, end);
        end += more.rows.length;
        yield more.count;
      }
    this.#rows.truncate(end);
  }

  /** From row `first` on, which begins at byte `from`. */
  *#kept(fates: Uint8Array, drop: Drop, limit: number, first = 0, from = 0): Generator<KeptRows> {
    let left = limit;
    let [chunk, at] = [Buffer.alloc(0), 0];
    let [start, count] = [0, 0];
    const chunks = this.#rows.chunks(from);
    for (const { batch, row, words } of this.#stretches())
      for (let i = Math.max(0, first - row); i * WORDS < words.length; i += 1) {
        const length = words[i * WORDS + 2] as number;
        while (at + length > chunk.length) {
          if (count > 0) yield { rows: chunk.subarray(start, at), count };
          const next = chunks.next();
          if (next.done) return;
          chunk = at < chunk.length ? Buffer.concat([chunk.subarray(at), next.value]) : next.value;
          [start, at, count] = [0, 0, 0];
        }
        const fate = fates[row + i] as number;
        if (fate === KEPT && left > 0) {
          [count, left] = [count + 1, left - 1];
        } else {
          if (count > 0) yield { rows: chunk.subarray(start, at), count };
          [start, count] = [at + length, 0];
          if (fate !== KEPT)
            drop(FATES[fate] as string, batch.file, batch.lineBefore + (words[i * WORDS + 3] as number));
        }
        at += length;
      }
    if (count > 0) yield { rows: chunk.subarray(start, at), count };
  }

  /** By row, its place in `FATES`. */
  #choose(): Uint8Array {
    const fates = new Uint8Array(this.#count);
    const parts = Math.max(1, Math.ceil((this.#count + this.#beginnings.size / 8) / this.#keysAtOnce));
    if (this.#batches.some(({ dedupe }) => dedupe !== "none"))
      for (let part = 0; part < parts; part += 1) this.#compare(fates, part, parts);
    if (this.#sets) this.#leaveOutNear(fates, this.#sets);
    if (this.#options.sample !== undefined) this.#draw(fates, this.#options.sample);
    return fates;
  }

  /** Of rows that are nearly equal, the first stays. */
  #leaveOutNear(fates: Uint8Array, sets: RowsFile): void {
    const reader = new SetReader(sets, this.#options.near_threshold ?? DEFAULT_NEAR_THRESHOLD);
    for (let row = 0; row < this.#count; row += 1) {
      if (fates[row] !== KEPT) reader.skip();
      else if (!reader.isNew()) fates[row] = NEAR;
    }
  }

  /** Compares the rows whose keys are in one of so many parts. */
  #compare(fates: Uint8Array, part: number, parts: number): void {
    const beginnings = new KeySet(Math.ceil(this.#beginnings.size / 8 / parts));
    for (const chunk of this.#beginnings.chunks()) {
      const words = wordsOf(chunk);
      for (let i = 0; i < words.length; i += 2)
        if ((words[i + 1] as number) % parts === part) beginnings.addWords(words[i] as number, words[i + 1] as number);
    }
    const seen = new KeySet(Math.ceil(this.#count / parts));
    for (const { batch, row, words } of this.#stretches()) {
      if (batch.dedupe === "none") continue;
      for (let i = 0; i * WORDS < words.length; i += 1) {
        const [low, high] = [words[i * WORDS] as number, words[i * WORDS + 1] as number];
        if (high % parts !== part) continue;
        if (mergesGrowing(batch) && beginnings.hasWords(low, high)) fates[row + i] = BEGINNING;
        else if (!seen.addWords(low, high)) fates[row + i] = EQUAL;
      }
    }
  }

  /** Keeps the rows with the smallest hashes of seed and content: the same ones in whatever order they stand. */
  #draw(fates: Uint8Array, size: number): void {
    const seed = this.#options.seed ?? 0;
    const ranks = new BigUint64Array(this.#count);
    let candidates = 0;
    for (const { row, words } of this.#stretches())
      for (let i = 0; i * WORDS < words.length; i += 1) {
        if (fates[row + i] !== KEPT) continue;
        const [low, high] = [words[i * WORDS] as number, words[i * WORDS + 1] as number];
        ranks[candidates] = keyOf(`${seed}:${(BigInt(high) << 32n) | BigInt(low)}`);
        candidates += 1;
      }
    if (candidates <= size) return;
    const sorted = ranks.slice(0, candidates).sort();
    const last = sorted[size - 1] as bigint;
    // Of equal ranks, the first rows are taken.
    let equal = size - sorted.indexOf(last);
    let candidate = 0;
    for (let row = 0; row < this.#count; row += 1) {
      if (fates[row] !== KEPT) continue;
      const rank = ranks[candidate] as bigint;
      candidate += 1;
      if (rank < last) continue;
      if (rank > last || equal <= 0) fates[row] = NOT_DRAWN;
      else equal -= 1;
    }
  }

  /** The ledger, from its beginning. */
  *#stretches(): Generator<Stretch> {
    let row = 0;
    let batchAt = 0;
    for (const chunk of this.#ledger.chunks()) {
      const all = wordsOf(chunk);
      for (let from = 0; from < all.length; ) {
        while ((this.#batches[batchAt + 1]?.first ?? Number.POSITIVE_INFINITY) <= row) batchAt += 1;
        const rows = (this.#batches[batchAt + 1]?.first ?? this.#count) - row;
        const words = all.subarray(from, from + rows * WORDS);
        yield { batch: this.#batches[batchAt] as Batch, row, words };
        from += words.length;
        row += words.length / WORDS;
      }
    }
  }

  close(): void {
    for (const file of [this.#rows, this.#ledger, this.#beginnings, this.#sets]) file?.close();
  }
}

const mergesGrowing = ({ dedupe }: Batch | Pick<SpooledRows, "dedupe">): boolean =>
  dedupe === "prefix" || dedupe === "near";

const wordsOf = ({ buffer, byteOffset, length }: Buffer): Uint32Array =>
  new Uint32Array(buffer, byteOffset, Math.floor(length / 4));
