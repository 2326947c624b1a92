/** `ForwardBackwardOutput`: what forward and forward_backward give, one group of tensors a datum. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { readInt64, writeInt64 } from "./bytes.ts";
import { at, type Decoded, decoding, WireFault } from "./decoded.ts";
import {
  elementsOf,
  itemBytes,
  readArray,
  readShape,
  type TensorArray,
  type TensorData,
  tensorOf,
  wireDtype,
  writeArray,
} from "./tensor.ts";
import {
  type ArrayRecord,
  ArrayRecordSchema,
  type BatchedTensor,
  BatchedTensorSchema,
  ForwardBackwardOutputSchema,
} from "./tinker.gen.ts";

/** The tensors of one datum by name, each with the datum's own first side. */
export type OutputTensors = Readonly<Record<string, TensorData>>;

export interface PassOutput {
  /** Servers name it as they like and nothing depends on it. */
  readonly outputType: string;
  /** One entry a datum, in order. */
  readonly outputs: readonly OutputTensors[];
  readonly metrics: Readonly<Record<string, number>>;
}

/** Most datums of a record without tensors, whose count nothing else bounds. */
const MOST_EMPTY_DATUMS = 1_000_000;

/** Neighbours with the same names, types and trailing shapes share a record. Tensors must be dense. */
export function encodePassOutput({ outputType, outputs, metrics }: PassOutput): Uint8Array<ArrayBuffer> {
  const groups: OutputTensors[][] = [];
  let last: string | undefined;
  for (const output of outputs) {
    const layout = JSON.stringify(Object.entries(output).map(([name, t]) => [name, t.dtype, t.shape.slice(1)]));
    if (layout === last) groups.at(-1)?.push(output);
    else groups.push([output]);
    last = layout;
  }
  const lossFnOutputs = groups.map((group) => writeRecord(outputType, group));
  const message = create(ForwardBackwardOutputSchema, { lossFnOutputType: outputType, lossFnOutputs, metrics });
  return toBinary(ForwardBackwardOutputSchema, message);
}

export function decodePassOutput(bytes: Uint8Array): Decoded<PassOutput> {
  return decoding("ForwardBackwardOutput", () => {
    const wire = fromBinary(ForwardBackwardOutputSchema, bytes, { readUnknownFields: false });
    return {
      outputType: wire.lossFnOutputType.slice(wire.lossFnOutputType.lastIndexOf(":") + 1),
      outputs: wire.lossFnOutputs.flatMap((record, i) => at(`loss_fn_outputs.${i}`, () => readRecord(record))),
      metrics: { ...wire.metrics },
    };
  });
}

function writeRecord(typeTag: string, group: readonly OutputTensors[]): ArrayRecord {
  const fields = Object.keys(group[0] ?? {}).map((name) => {
    const tensors = group.map((output) => output[name] as TensorData);
    return [name, writeBatched(tensors)] as const;
  });
  return create(ArrayRecordSchema, {
    typeTag: fields.length === 0 ? "" : typeTag,
    fields: Object.fromEntries(fields),
    numDatums: BigInt(group.length),
  });
}

function writeBatched(tensors: readonly TensorData[]): BatchedTensor {
  const parts = tensors.map(({ data, sparse }) => {
    if (sparse) throw new RangeError("results are dense");
    return writeArray(data);
  });
  const offsets = [0];
  for (const part of parts) offsets.push((offsets.at(-1) as number) + part.length);
  const data = new Uint8Array(offsets.at(-1) as number);
  parts.forEach((part, i) => {
    data.set(part, offsets[i]);
  });
  const { dtype, shape } = tensors[0] as TensorData;
  return create(BatchedTensorSchema, {
    data,
    offsets: writeInt64(offsets),
    dtype: wireDtype(dtype),
    trailingShape: shape.slice(1).map(BigInt),
  });
}

function readRecord({ fields, numDatums }: ArrayRecord): OutputTensors[] {
  const named = Object.entries(fields);
  const limit = named.length > 0 ? Number.MAX_SAFE_INTEGER : MOST_EMPTY_DATUMS;
  if (numDatums < 0n || numDatums > BigInt(limit)) throw new WireFault(`a record has ${numDatums} datums`);
  const count = Number(numDatums);
  const columns = named.map(([name, tensor]) => [name, at(name, () => readBatched(tensor, count))] as const);
  return Array.from({ length: count }, (_, i) =>
    Object.fromEntries(columns.map(([name, tensors]) => [name, tensors[i] as TensorData])),
  );
}

function readBatched({ data, offsets: offsetBytes, dtype, trailingShape }: BatchedTensor, count: number): TensorData[] {
  const offsets = readInt64(offsetBytes);
  if (offsets.length !== count + 1) throw new WireFault(`${offsets.length} offsets for ${count} datums`);
  const trailing = readShape(trailingShape);
  const rowBytes = elementsOf(trailing) * itemBytes(dtype);
  if (rowBytes === 0) throw new WireFault(`a trailing shape of [${trailing}] holds nothing`);
  if (offsets[0] !== 0 || offsets[count] !== data.length) throw new WireFault("offsets do not span the data");
  const isAscending = offsets.every(
    (offset, i) => offset % rowBytes === 0 && offset >= ((offsets[i - 1] as number | undefined) ?? 0),
  );
  if (!isAscending) throw new WireFault("offsets are not ascending rows");
  const all = readArray(data, dtype);
  return Array.from({ length: count }, (_, i) => sliceRows(all, offsets, i, rowBytes, trailing));
}

/** The rows of one datum, a view of all. */
function sliceRows(
  all: TensorArray,
  offsets: ArrayLike<number>,
  i: number,
  rowBytes: number,
  trailing: readonly number[],
): TensorData {
  const width = elementsOf(trailing);
  const from = (offsets[i] as number) / rowBytes;
  const rows = (offsets[i + 1] as number) / rowBytes - from;
  return tensorOf(all.subarray(from * width, (from + rows) * width), [rows, ...trailing]);
}
