/** Bytes of a source as UTF-8: decompressed where they are gzip or zstd, transcoded where they are UTF-16, without a byte-order mark. */
import type { Transform } from "node:stream";
import * as zlib from "node:zlib";
import { InflateError, type Inflation, inflated } from "./inflate.ts";

export type Chunks = AsyncIterable<Uint8Array>;

/** The source cannot be read further from here; what came before stands. */
export class SourceFault extends Error {}

/** Enough to see magic numbers and the zero bytes of UTF-16. */
const HEAD_BYTES = 4;

/** What cannot be read ends the stream, and `onFault` is told: what came before stands. `reopen` gives the chunks once more. */
export async function* decoded(
  chunks: Chunks,
  onFault: (fault: SourceFault) => void,
  reopen?: () => Chunks,
): AsyncGenerator<Buffer> {
  try {
    const [head, all] = await peek(chunks, HEAD_BYTES);
    const create = decompressor(head);
    if (create) yield* decoded(decompressed({ create, chunks: all, reopen }), onFault);
    else yield* asUtf8(head, all);
  } catch (error) {
    if (!(error instanceof SourceFault)) throw error;
    onFault(error);
  }
}

const isGzip = (head: Buffer): boolean => head[0] === 0x1f && head[1] === 0x8b;
const isZstd = (head: Buffer): boolean => head.readUInt32LE(0) === 0xfd2fb528;

/** Whether what begins with these four bytes is anything but UTF-8. */
export const isEncoded = (head: Buffer): boolean => isGzip(head) || isZstd(head) || utf16(head) !== undefined;

/** Bytes of the byte-order mark of UTF-8, which is no part of the text. */
export const byteOrderMarkBytes = (head: Buffer): number =>
  head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? 3 : 0;

function decompressor(head: Buffer): (() => Transform) | undefined {
  if (isGzip(head)) return zlib.createGunzip;
  if (!isZstd(head)) return undefined;
  const create = (zlib as { createZstdDecompress?: () => Transform }).createZstdDecompress;
  if (!create)
    throw new SourceFault(
      "compressed with zstd, which this Node.js cannot read: decompress it first, or use Node.js 22.15 or later",
    );
  return create;
}

async function* decompressed(inflation: Inflation): AsyncGenerator<Uint8Array> {
  try {
    yield* inflated(inflation);
  } catch (error) {
    const { code } = error instanceof InflateError ? (error.cause as NodeJS.ErrnoException) : {};
    if (code === "Z_BUF_ERROR") throw new SourceFault("the compressed data breaks off");
    if (error instanceof InflateError) throw new SourceFault("the compressed data is damaged");
    throw error;
  }
}

async function* asUtf8(head: Buffer, chunks: Chunks): AsyncGenerator<Buffer> {
  const encoding = utf16(head);
  if (!encoding) {
    yield* without(chunks, byteOrderMarkBytes(head));
    return;
  }
  const decoder = new TextDecoder(encoding);
  for await (const chunk of chunks) yield Buffer.from(decoder.decode(chunk, { stream: true }));
  yield Buffer.from(decoder.decode());
}

/** By its mark, or by the zero bytes around the first character, which in JSON is an ASCII one. */
function utf16(head: Buffer): "utf-16le" | "utf-16be" | undefined {
  const [a, b, c, d] = head;
  if (a === 0xff && b === 0xfe) return "utf-16le";
  if (a === 0xfe && b === 0xff) return "utf-16be";
  if (a !== 0 && b === 0 && c !== 0 && d === 0) return "utf-16le";
  return a === 0 && b !== 0 && c === 0 && d !== 0 ? "utf-16be" : undefined;
}

async function* without(chunks: Chunks, skip: number): AsyncGenerator<Buffer> {
  let left = skip;
  for await (const chunk of chunks) {
    const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    const dropped = Math.min(left, bytes.length);
    left -= dropped;
    if (bytes.length > dropped) yield bytes.subarray(dropped);
  }
}

/** The first bytes (padded with ones where there are fewer) and all chunks again. */
async function peek(chunks: Chunks, count: number): Promise<[Buffer, Chunks]> {
  const iterator = chunks[Symbol.asyncIterator]();
  const seen: Uint8Array[] = [];
  let length = 0;
  while (length < count) {
    const next = await iterator.next();
    if (next.done) break;
    seen.push(next.value);
    length += next.value.length;
  }
  const head = Buffer.alloc(count, 1);
  Buffer.concat(seen).copy(head);
  return [head, resumed(seen, iterator)];
}

/** What was taken off an iterator, followed by the rest of it. */
export async function* resumed<T>(seen: readonly T[], iterator: AsyncIterator<T>): AsyncGenerator<T> {
  try {
    yield* seen;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  } finally {
    await iterator.return?.();
  }
}
