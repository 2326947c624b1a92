/**
 * The safetensors format: 8 bytes of little-endian header length, a JSON header (name → dtype, shape, byte range), then
 * the bytes. Read: F32, F16 and BF16, widened to float32, single file or sharded by `model.safetensors.index.json`.
 * Written: F32.
 */
import { closeSync, existsSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";

/** Row-major float32 values. */
export interface Tensor {
  readonly shape: readonly number[];
  readonly data: Float32Array;
}
export type Tensors = ReadonlyMap<string, Tensor>;

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

const BYTES: Readonly<Record<string, number>> = { F32: 4, F16: 2, BF16: 2 };
/** As in the reference implementation: a longer header is taken for garbage. */
const MOST_HEADER_BYTES = 100_000_000;

/** All tensors of a model folder. Throws RL5002, or RL5001 for a number format that is not read. */
export function readModelTensors(folder: string): Tensors {
  const index = join(folder, "model.safetensors.index.json");
  if (!existsSync(index)) return readTensors(join(folder, "model.safetensors"));
  let shards: Set<string>;
  try {
    const { weight_map } = JSON.parse(readFileSync(index, "utf8")) as { weight_map: Record<string, string> };
    shards = new Set(Object.values(weight_map));
  } catch (error) {
    fail("RL5002", `${index} does not hold a weight map: ${messageOf(error)}.`, { cause: error });
  }
  const all = new Map<string, Tensor>();
  for (const shard of shards) {
    if (typeof shard !== "string" || shard.includes("/") || shard.includes("\\"))
      fail("RL5002", `${index} names ${JSON.stringify(shard)}; shards must lie in the folder itself.`);
    for (const [name, tensor] of readTensors(join(folder, shard))) all.set(name, tensor);
  }
  return all;
}

/** All tensors of one file, and the free-form strings of its header. */
export function readTensors(path: string): Tensors {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    fail("RL5002", `${path} cannot be opened: ${messageOf(error)}.`, { cause: error });
  }
  try {
    const { entries, start } = readHeader(fd, path);
    return new Map(entries.map(([name, entry]) => [name, readTensor(fd, path, name, entry, start)]));
  } finally {
    closeSync(fd);
  }
}

function readHeader(fd: number, path: string): { entries: readonly [string, Entry][]; start: number } {
  const damaged = (why: string): never => fail("RL5002", `${path} is not a whole safetensors file: ${why}.`);
  const size = statSync(path).size;
  const length = size < 8 ? 0 : Number(readRange(fd, path, 0, 8).readBigUInt64LE(0));
  if (length === 0 || length > MOST_HEADER_BYTES || 8 + length > size) damaged("its header does not fit into the file");
  let header: Record<string, Entry>;
  try {
    header = JSON.parse(readRange(fd, path, 8, length).toString("utf8"));
  } catch (error) {
    return damaged(`its header does not parse (${messageOf(error)})`);
  }
  const entries = Object.entries(header).filter(([name]) => name !== "__metadata__");
  for (const [name, entry] of entries) {
    const [from, to] = entry?.data_offsets ?? [];
    if (
      !(Number.isSafeInteger(from) && Number.isSafeInteger(to)) ||
      from! < 0 ||
      to! < from! ||
      8 + length + to! > size
    )
      damaged(`the bytes of ${name} lie outside it`);
    if (!Array.isArray(entry.shape)) damaged(`${name} has no shape`);
  }
  return { entries, start: 8 + length };
}

function readTensor(fd: number, path: string, name: string, entry: Entry, start: number): Tensor {
  const bytesPerValue = BYTES[entry.dtype];
  if (bytesPerValue === undefined)
    fail("RL5001", `${path}: ${name} is stored as ${entry.dtype}; the embedded server reads F32, F16 and BF16.`);
  const [from, to] = entry.data_offsets;
  const count = entry.shape.reduce((product, side) => product * side, 1);
  if (count * bytesPerValue !== to - from)
    fail(
      "RL5002",
      `${path}: ${name} has ${to - from} bytes, its shape [${entry.shape.join(", ")}] needs ${count * bytesPerValue}.`,
    );
  return { shape: entry.shape, data: widen(readRange(fd, path, start + from, to - from), entry.dtype, count) };
}

function readRange(fd: number, path: string, at: number, length: number): Buffer {
  const bytes = Buffer.alloc(length);
  for (let done = 0; done < length; ) {
    // One read call takes at most 2 GiB.
    const count = readSync(fd, bytes, done, Math.min(length - done, 1 << 30), at + done);
    if (count === 0) fail("RL5002", `${path} ended while it was read.`);
    done += count;
  }
  return bytes;
}

/** Little-endian bytes as float32 values. */
function widen(bytes: Buffer, dtype: string, count: number): Float32Array {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (dtype === "F32") {
    const out = new Float32Array(count);
    for (let i = 0; i < count; i++) out[i] = view.getFloat32(i * 4, true);
    return out;
  }
  if (dtype === "F16") return Float32Array.from({ length: count }, (_, i) => halfToNumber(view.getUint16(i * 2, true)));
  const bits = new Uint32Array(count);
  for (let i = 0; i < count; i++) bits[i] = view.getUint16(i * 2, true) << 16;
  return new Float32Array(bits.buffer);
}

/** IEEE 754 binary16. */
function halfToNumber(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** The bytes of a float32 safetensors file, tensors in the map's order; the same tensors give the same bytes. */
export function encodeTensors(tensors: Tensors): Uint8Array {
  const header: Record<string, unknown> = { __metadata__: { format: "pt" } };
  let at = 0;
  for (const [name, { shape, data }] of tensors) {
    header[name] = { dtype: "F32", shape, data_offsets: [at, at + data.byteLength] };
    at += data.byteLength;
  }
  const json = Buffer.from(JSON.stringify(header));
  // Spaces after the header align the values to eight bytes, as the format asks for.
  const padded = Math.ceil(json.length / 8) * 8;
  const out = Buffer.alloc(8 + padded + at, " ");
  out.writeBigUInt64LE(BigInt(padded), 0);
  json.copy(out, 8);
  let offset = 8 + padded;
  for (const { data } of tensors.values()) {
    for (let i = 0; i < data.length; i++) out.writeFloatLE(data[i] as number, offset + i * 4);
    offset += data.byteLength;
  }
  return out;
}
