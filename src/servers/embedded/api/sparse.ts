/** Compressed sparse rows (protocol document, 4.2) written out. */

export interface SparseRows {
  /** The listed values, row by row. */
  readonly values: ArrayLike<number>;
  /** [rows + 1]: where each row begins among the values. */
  readonly rows: ArrayLike<number>;
  /** The column of each value. */
  readonly columns: ArrayLike<number>;
  /** Rows and columns. */
  readonly shape: readonly number[];
}

/** Far more than any request of this server may hold. */
const MOST_VALUES = 2 ** 26;

/** Row-major values, 0 where none is listed. Throws an Error with a sentence where the parts do not fit together. */
export function densify({ values, rows, columns, shape }: SparseRows): Float64Array {
  const [height, width] = shape as [number, number];
  if (shape.length !== 2 || !isCount(height) || !isCount(width) || height * width > MOST_VALUES)
    throw new Error("A sparse tensor needs a shape of rows and columns");
  if (rows.length !== height + 1 || rows[0] !== 0 || rows[height] !== values.length || columns.length !== values.length)
    throw new Error("The indices of a sparse tensor should fit its shape and its values");
  const dense = new Float64Array(height * width);
  for (let row = 0; row < height; row++) {
    const [from, to] = [rows[row] as number, rows[row + 1] as number];
    if (!(to >= from)) throw new Error("The row indices of a sparse tensor should not fall");
    for (let i = from; i < to; i++) {
      const column = columns[i] as number;
      if (!isCount(column) || column >= width) throw new Error(`A sparse tensor has no column ${column}`);
      dense[row * width + column] = values[i] as number;
    }
  }
  return dense;
}

function isCount(value: number): boolean {
  return Number.isSafeInteger(value) && value >= 0;
}
