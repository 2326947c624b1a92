/**
 * Little-endian arrays inside `bytes` fields. Their place in a message is not aligned, so reading copies. Views are used
 * instead of a DataView per element: every platform that Node's WebAssembly and ours run on is little-endian.
 */
import { at, WireFault } from "./decoded.ts";

/** Whole numbers: 32-bit where all fit, else doubles, which are exact up to 2^53. */
export type IntArray = Int32Array | Float64Array;

/** The bytes of an array as they are; the array must not change while they are in use. */
export function bytesOf(values: Int32Array | Float32Array | BigInt64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

/** One after the other. */
export function joinBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let next = 0;
  for (const part of parts) {
    whole.set(part, next);
    next += part.length;
  }
  return whole;
}

function itemsIn(bytes: Uint8Array, itemBytes: number): number {
  if (bytes.length % itemBytes !== 0) throw new WireFault(`${bytes.length} bytes are not whole items of ${itemBytes}`);
  return bytes.length / itemBytes;
}

function aligned(bytes: Uint8Array, itemBytes: number): ArrayBuffer {
  itemsIn(bytes, itemBytes);
  return new Uint8Array(bytes).buffer;
}

/**
 * An array for each part, all in one buffer: a buffer of its own costs more than the few hundred bytes of most parts. `name` says where
 * a part stands that is not whole.
 */
export function readEach<T extends Int32Array | Float32Array>(
  type: new (buffer: ArrayBuffer, byteOffset: number, length: number) => T,
  parts: readonly Uint8Array[],
  name: (part: number) => string,
): readonly T[] {
  const counts = parts.map((part, i) => at(name(i), () => itemsIn(part, 4)));
  const { buffer } = joinBytes(parts);
  let from = 0;
  return counts.map((count) => {
    const values = new type(buffer, from, count);
    from += count * 4;
    return values;
  });
}

export function readFloat32(bytes: Uint8Array): Float32Array {
  return new Float32Array(aligned(bytes, 4));
}

export function readInt32(bytes: Uint8Array): Int32Array {
  return new Int32Array(aligned(bytes, 4));
}

/** bfloat16 widened to float32: the upper half of its bits. */
export function readBfloat16(bytes: Uint8Array): Float32Array {
  const halves = new Uint16Array(aligned(bytes, 2));
  const words = new Uint32Array(halves.length);
  for (let i = 0; i < halves.length; i += 1) words[i] = (halves[i] as number) << 16;
  return new Float32Array(words.buffer);
}

/** int64 without a BigInt per element: the upper half only repeats the sign where a value fits in 32 bits. */
export function readInt64(bytes: Uint8Array): IntArray {
  const words = new Int32Array(aligned(bytes, 8));
  const narrow = new Int32Array(words.length / 2);
  for (let i = 0; i < narrow.length; i += 1) {
    const low = words[2 * i] as number;
    if (words[2 * i + 1] !== low >> 31) return Float64Array.from(new BigInt64Array(words.buffer), Number);
    narrow[i] = low;
  }
  return narrow;
}

export function writeInt64(values: IntArray | readonly number[]): Uint8Array {
  const words = new BigInt64Array(values.length);
  if (values instanceof Int32Array) {
    const halves = new Int32Array(words.buffer);
    for (let i = 0; i < values.length; i += 1) {
      const value = values[i] as number;
      halves[2 * i] = value;
      halves[2 * i + 1] = value >> 31;
    }
  } else {
    for (let i = 0; i < values.length; i += 1) words[i] = BigInt(values[i] as number);
  }
  return bytesOf(words);
}
