/**
 * Cuts a request's datums into padded batches. Every new shape costs a second of compilation, so lengths and batch sizes
 * come from short ladders; and the cut depends on the request alone, so equal requests give equal bits.
 */

/** One training row. */
export interface Datum {
  /** [N]. */
  readonly tokens: Int32Array;
  /** [N · K]: K targets a position, side by side; nearly always one. */
  readonly targets: Int32Array;
  /** Loss inputs by name, one value per target. */
  readonly tensors: Readonly<Record<string, Float32Array>>;
}

export interface Batch {
  /** Places in the request, row by row; rows beyond them are padding. */
  readonly rows: readonly number[];
  /** Rows with padding: a power of two. */
  readonly size: number;
  /** Positions with padding. */
  readonly length: number;
  /** Targets a position, the same in all rows. */
  readonly width: number;
}

/** Most padded positions of one batch; beyond it, activations outgrow caches and then memory. */
const MOST_POSITIONS = 4096;

/** The next of 32, 40, 48, 56, 64, 80, 96, 112, 128, 160 …: four to an octave, at most a fifth of the longest row is padding. */
export function bucketLength(length: number): number {
  let power = 32;
  while (power * 2 <= length) power *= 2;
  const step = power / 4;
  return Math.max(32, Math.ceil(length / step) * step);
}

/** Only the lengths of data matter. Rows of one batch have as many targets a position. */
export function planBatches(
  data: readonly Readonly<Record<"tokens" | "targets", { readonly length: number }>>[],
): readonly Batch[] {
  const lengthOf = (row: number) => (data[row] as (typeof data)[number]).tokens.length;
  const widthOf = (row: number) => (data[row] as (typeof data)[number]).targets.length / lengthOf(row);
  // Stable: equally long rows stay in the request's order.
  const order = data.map((_, row) => row).sort((a, b) => widthOf(a) - widthOf(b) || lengthOf(b) - lengthOf(a));
  const batches: Batch[] = [];
  for (let at = 0; at < order.length; ) {
    const first = order[at] as number;
    const [length, width] = [bucketLength(lengthOf(first)), widthOf(first)];
    const most = Math.max(1, 2 ** Math.floor(Math.log2(MOST_POSITIONS / length)));
    const rows = order.slice(at, at + most).filter((row) => widthOf(row) === width);
    batches.push({ rows, size: 2 ** Math.ceil(Math.log2(rows.length)), length, width });
    at += rows.length;
  }
  return batches;
}

/** Row-major `[size, length · each]`, zeros where there is no value. */
export function padRows<A extends Int32Array | Float32Array>(
  batch: Batch,
  each: number,
  make: (count: number) => A,
  rowOf: (row: number) => ArrayLike<number>,
): A {
  const places = batch.length * each;
  const out = make(batch.size * places);
  batch.rows.forEach((row, i) => {
    out.set(rowOf(row), i * places);
  });
  return out;
}
