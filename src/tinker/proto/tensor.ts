/**
 * Tensors: dense or CSR, float32 or whole numbers. What the wire has narrower is widened on reading: bfloat16 to float32,
 * int32 to int64. Whole numbers are held in 32 bits where they fit.
 */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { bytesOf, type IntArray, readBfloat16, readFloat32, readInt32, readInt64, writeInt64 } from "./bytes.ts";
import { WireFault } from "./decoded.ts";
import { DType, type Tensor, TensorSchema } from "./tinker.gen.ts";

export type TensorArray = Float32Array | IntArray;

/** A tensor, row-major. `data` holds the listed values only where `sparse` is there. */
export interface TensorData {
  readonly dtype: "float32" | "int64";
  readonly shape: readonly number[];
  readonly data: TensorArray;
  /** Rows and columns of a matrix in compressed form; entries that are not listed are 0. */
  readonly sparse?: { readonly crow: IntArray; readonly col: IntArray };
}

/** A vector as a tensor. */
export function tensorOf(data: TensorArray, shape: readonly number[] = [data.length]): TensorData {
  return { dtype: data instanceof Float32Array ? "float32" : "int64", shape, data };
}

/** Bytes of one element on the wire. */
export function itemBytes(dtype: DType): number {
  switch (dtype) {
    case DType.DTYPE_FLOAT32:
    case DType.DTYPE_INT32:
      return 4;
    case DType.DTYPE_INT64:
      return 8;
    case DType.DTYPE_BFLOAT16:
      return 2;
    default:
      throw new WireFault(`dtype ${dtype} is not known`);
  }
}

/** Elements in a type of the wire, widened. */
export function readArray(bytes: Uint8Array, dtype: DType): TensorArray {
  switch (dtype) {
    case DType.DTYPE_FLOAT32:
      return readFloat32(bytes);
    case DType.DTYPE_INT32:
      return readInt32(bytes);
    case DType.DTYPE_INT64:
      return readInt64(bytes);
    case DType.DTYPE_BFLOAT16:
      return readBfloat16(bytes);
    default:
      throw new WireFault(`dtype ${dtype} is not known`);
  }
}

export const wireDtype = (dtype: TensorData["dtype"]): DType =>
  dtype === "float32" ? DType.DTYPE_FLOAT32 : DType.DTYPE_INT64;

export function writeArray(data: TensorArray): Uint8Array {
  return data instanceof Float32Array ? bytesOf(data) : writeInt64(data);
}

/** Sides of a shape as numbers; a side below 0 or beyond 2^53 is a fault. */
export function readShape(shape: readonly bigint[]): number[] {
  return shape.map((side) => {
    if (side < 0n || side > BigInt(Number.MAX_SAFE_INTEGER)) throw new WireFault(`a shape has a side of ${side}`);
    return Number(side);
  });
}

export const elementsOf = (shape: readonly number[]): number => shape.reduce((n, side) => n * side, 1);

export function readTensor({ encoding, dtype, shape: sides }: Tensor): TensorData {
  const wide = dtype === DType.DTYPE_FLOAT32 || dtype === DType.DTYPE_BFLOAT16 ? "float32" : "int64";
  const shape = readShape(sides);
  if (encoding.case === "sparseCsr") {
    const { values, crowIndices, colIndices } = encoding.value;
    const data = readArray(values, dtype);
    const sparse = { crow: readInt64(crowIndices), col: readInt64(colIndices) };
    checkCsr(shape, data.length, sparse);
    return { dtype: wide, shape, data, sparse };
  }
  const data = readArray(encoding.case === "dense" ? encoding.value : new Uint8Array(), dtype);
  // A scalar has no sides, and so has a tensor whose shape was left out.
  const whole = shape.length === 0 && data.length !== 1 ? [data.length] : shape;
  if (elementsOf(whole) !== data.length) throw new WireFault(`${data.length} elements for shape [${whole}]`);
  return { dtype: wide, shape: whole, data };
}

function checkCsr(shape: readonly number[], listed: number, { crow, col }: NonNullable<TensorData["sparse"]>): void {
  const [rows, columns] = shape;
  if (shape.length !== 2 || rows === undefined || columns === undefined) {
    throw new WireFault(`a sparse tensor has shape [${shape}] instead of rows and columns`);
  }
  if (crow.length !== rows + 1) throw new WireFault(`${crow.length} row indices for ${rows} rows`);
  if (col.length !== listed) throw new WireFault(`${col.length} column indices for ${listed} values`);
  if (crow[0] !== 0 || crow[rows] !== listed) throw new WireFault("row indices do not span the values");
  if (crow.some((start, i) => i > 0 && start < (crow[i - 1] as number))) throw new WireFault("row indices descend");
  if (col.some((c) => c < 0 || c >= columns)) throw new WireFault("a column index is outside the shape");
}

export function writeTensor({ dtype, shape, data, sparse }: TensorData): Tensor {
  const encoding: MessageInitShape<typeof TensorSchema>["encoding"] = sparse
    ? {
        case: "sparseCsr",
        value: {
          values: writeArray(data),
          crowIndices: writeInt64(sparse.crow),
          colIndices: writeInt64(sparse.col),
        },
      }
    : { case: "dense", value: writeArray(data) };
  return create(TensorSchema, { encoding, dtype: wireDtype(dtype), shape: shape.map(BigInt) });
}

/** Most elements of a sparse tensor that is written out in full. */
const MOST_DENSE = 2 ** 28;

/** All elements, row-major, with `fill` where a sparse tensor lists none. Throws RangeError beyond 2^28 elements. */
export function denseValues({ shape, data, sparse, dtype }: TensorData, fill = 0): TensorArray {
  if (!sparse) return data;
  const [rows = 0, columns = 0] = shape;
  if (rows * columns > MOST_DENSE) throw new RangeError(`a sparse tensor of [${shape}] is too large to be written out`);
  const isNarrow = data instanceof Int32Array;
  const size = rows * columns;
  const full = dtype === "float32" ? new Float32Array(size) : isNarrow ? new Int32Array(size) : new Float64Array(size);
  full.fill(fill);
  for (let row = 0; row < rows; row += 1) {
    for (let k = sparse.crow[row] as number; k < (sparse.crow[row + 1] as number); k += 1) {
      full[row * columns + (sparse.col[k] as number)] = data[k] as number;
    }
  }
  return full;
}
