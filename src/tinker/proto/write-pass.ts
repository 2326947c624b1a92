/**
 * Training data straight into the bytes of a request. A step has thousands of tensors: as objects of a general encoder each of them is copied
 * once for every message that it lies in, here once. The bytes are those of the general encoder, which stays the one for
 * everything but plain datums.
 */
import type { DatumMessage } from "./request.ts";
import type { TensorData } from "./tensor.ts";

/** Field numbers and wire types of `Datum`, `Chunk`, `EncodedTextChunk` and `Tensor` as they are written: (number << 3) | type. */
const DATA = (3 << 3) | 2;
const MODEL_INPUT = (1 << 3) | 2;
const LOSS_FN_INPUTS = (2 << 3) | 2;
const FIRST = (1 << 3) | 2;
const SECOND = (2 << 3) | 2;
const DTYPE = (3 << 3) | 0;
const SHAPE = (4 << 3) | 2;

const FLOAT32 = 1;
const INT64 = 2;
const INT64_BYTES = 8;

interface SizedTensor {
  readonly name: Uint8Array;
  readonly tensor: TensorData;
  /** Of the tensor's own message, of its values, of its shape. */
  readonly size: number;
  readonly valueBytes: number;
  readonly shapeBytes: number;
}

/** A datum with the sizes of what lies in it: lengths stand before contents. */
interface SizedDatum {
  readonly tokens: readonly Int32Array[];
  readonly tensors: readonly SizedTensor[];
  readonly size: number;
}

/** Text, and dense tensors of which whole numbers are narrow. */
export function isPlain({ input, lossInputs, inputSpans, lossInputSpans }: DatumMessage): boolean {
  return (
    inputSpans === undefined &&
    lossInputSpans === undefined &&
    input.every(({ type }) => type === "encoded_text") &&
    Object.values(lossInputs).every(({ data, sparse }) => sparse === undefined && !(data instanceof Float64Array))
  );
}

/** The `data` fields of a request, of plain datums only. */
export function writeData(data: readonly DatumMessage[]): Uint8Array<ArrayBuffer> {
  const names = new Map<string, Uint8Array>();
  const sized = data.map((datum) => sizeDatum(datum, names));
  const writer = new Writer(sized.reduce((sum, { size }) => sum + field(size), 0));
  for (const datum of sized) writeDatum(writer, datum);
  return writer.bytes;
}

function sizeDatum({ input, lossInputs }: DatumMessage, names: Map<string, Uint8Array>): SizedDatum {
  const tokens = input.map((chunk) => (chunk as { readonly tokens: Int32Array }).tokens);
  const tensors = Object.entries(lossInputs).map(([name, tensor]) => sizeTensor(encoded(name, names), tensor));
  let size = 0;
  for (const { byteLength } of tokens) size += field(field(byteLength === 0 ? 0 : field(byteLength)));
  for (const { name, size: own } of tensors) size += field(field(name.length) + field(own));
  return { tokens, tensors, size };
}

function sizeTensor(name: Uint8Array, tensor: TensorData): SizedTensor {
  const { data, shape } = tensor;
  const valueBytes = data instanceof Float32Array ? data.byteLength : data.length * INT64_BYTES;
  const shapeBytes = shape.reduce((sum, side) => sum + varintBytes(side), 0);
  const size = field(valueBytes) + 2 + (shape.length === 0 ? 0 : field(shapeBytes));
  return { name, tensor, size, valueBytes, shapeBytes };
}

function writeDatum(writer: Writer, { tokens, tensors, size }: SizedDatum): void {
  writer.open(DATA, size);
  for (const own of tokens) {
    // Empty bytes are a default, which is not written.
    const inner = own.byteLength === 0 ? 0 : field(own.byteLength);
    writer.open(MODEL_INPUT, field(inner));
    writer.open(FIRST, inner);
    if (inner > 0) writer.array(FIRST, own);
  }
  for (const { name, tensor, size: own, valueBytes, shapeBytes } of tensors) {
    writer.open(LOSS_FN_INPUTS, field(name.length) + field(own));
    writer.array(FIRST, name);
    writer.open(SECOND, own);
    const { data, shape } = tensor;
    if (data instanceof Float32Array) writer.array(FIRST, data);
    else {
      writer.open(FIRST, valueBytes);
      writer.int64s(data);
    }
    writer.open(DTYPE, data instanceof Float32Array ? FLOAT32 : INT64);
    if (shape.length === 0) continue;
    writer.open(SHAPE, shapeBytes);
    for (const side of shape) writer.varint(side);
  }
}

function encoded(name: string, names: Map<string, Uint8Array>): Uint8Array {
  const known = names.get(name) ?? new TextEncoder().encode(name);
  names.set(name, known);
  return known;
}

/** Bytes of a field with contents of a length, its number below 16. */
const field = (length: number): number => 1 + varintBytes(length) + length;

function varintBytes(value: number): number {
  let bytes = 1;
  for (let rest = value; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes += 1;
  return bytes;
}

class Writer {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly #view: DataView;
  #at = 0;

  constructor(size: number) {
    this.bytes = new Uint8Array(size);
    this.#view = new DataView(this.bytes.buffer);
  }

  varint(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.bytes[this.#at++] = (rest % 0x80) | 0x80;
    this.bytes[this.#at++] = rest;
  }

  /** A field's tag, and its length or value. */
  open(tag: number, length: number): void {
    this.bytes[this.#at++] = tag;
    this.varint(length);
  }

  array(tag: number, values: Uint8Array | Int32Array | Float32Array): void {
    this.open(tag, values.byteLength);
    this.bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), this.#at);
    this.#at += values.byteLength;
  }

  int64s(values: ArrayLike<number>): void {
    for (let i = 0; i < values.length; i += 1) {
      const value = values[i] as number;
      this.#view.setInt32(this.#at, value, true);
      this.#view.setInt32(this.#at + 4, value >> 31, true);
      this.#at += INT64_BYTES;
    }
  }
}
