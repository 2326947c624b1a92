/**
 * Cuts a request's datums into padded batches. Every new shape costs a second of compilation, so lengths and batch sizes
 * come from short ladders; and the cut depends on the request alone, so equal requests give equal bits.
 */

/** One training row: `tokens`, `targets` and each tensor have the same length. */
export interface Datum {
  readonly tokens: Int32Array;
  readonly targets: Int32Array;
  /** Loss inputs by name, one value per position. */
  readonly tensors: Readonly<Record<string, Float32Array>>;
}

export interface Batch {
  /** Places in the request, row by row; rows beyond them are padding. */
  readonly rows: readonly number[];
  /** Rows with padding: a power of two. */
  readonly size: number;
  /** Positions with padding. */
  readonly length: number;
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

export function planBatches(data: readonly { readonly tokens: { readonly length: number } }[]): readonly Batch[] {
  const lengthOf = (row: number) => (data[row] as (typeof data)[number]).tokens.length;
  // Stable: equally long rows stay in the request's order.
  const order = data.map((_, row) => row).sort((a, b) => lengthOf(b) - lengthOf(a));
  const batches: Batch[] = [];
  for (let at = 0; at < order.length; ) {
    const length = bucketLength(lengthOf(order[at] as number));
    const most = Math.max(1, 2 ** Math.floor(Math.log2(MOST_POSITIONS / length)));
    const rows = order.slice(at, at + most);
    batches.push({ rows, size: 2 ** Math.ceil(Math.log2(rows.length)), length });
    at += rows.length;
  }
  return batches;
}

/** Row-major `[size, length]`, zeros where there is no value. */
export function padRows<A extends Int32Array | Float32Array>(
  batch: Batch,
  make: (count: number) => A,
  rowOf: (row: number) => ArrayLike<number>,
): A {
  const out = make(batch.size * batch.length);
  batch.rows.forEach((row, i) => {
    out.set(rowOf(row), i * batch.length);
  });
  return out;
}
