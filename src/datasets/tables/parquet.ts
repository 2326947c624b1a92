/**
 * Parquet, a row group at a time: memory is for the largest group, whatever the size of the file. Values become what JSON has:
 * structs and lists stay what they are, dates and times become ISO text, whole numbers that a double cannot hold become text,
 * numbers that are none (NaN, infinities) become null. Bytes are refused: JSON has no such thing.
 */
import { type FileHandle, open } from "node:fs/promises";
import type { AsyncBuffer, Compressors, ParquetParsers, SchemaTree } from "hyparquet";
import { fail, messageOf, RlcliError } from "../../diagnostic.ts";
import type { Json } from "../../value.ts";
import type { TableRecord } from "./record.ts";

/** Rows of one file, in order; `line` is the row's number from 1. Fails with RL6016 where it is not Parquet, damaged, or holds bytes. */
export async function* parquetRecords(name: string, path: string): AsyncGenerator<TableRecord> {
  const [{ parquetMetadataAsync, parquetReadObjects, parquetSchema }, { compressors }] = await Promise.all([
    import("hyparquet"),
    import("hyparquet-compressors"),
  ]);
  const handle = await open(path);
  try {
    const file = await bufferOf(handle);
    const metadata = await attempt(name, "its footer", () => parquetMetadataAsync(file));
    refuseBytes(name, parquetSchema(metadata));
    let rowStart = 0;
    for (const { num_rows } of metadata.row_groups) {
      const rowEnd = rowStart + Number(num_rows);
      const options = {
        file,
        metadata,
        compressors: withEmpty(compressors),
        rowStart,
        rowEnd,
        utf8: false,
        parsers: PARSERS,
      };
      const rows = await attempt(name, `rows ${rowStart + 1} to ${rowEnd}`, () => parquetReadObjects(options));
      for (const [i, row] of rows.entries()) yield { line: rowStart + i + 1, value: plain(row) as object };
      rowStart = rowEnd;
    }
  } finally {
    await handle.close();
  }
}

/** A page may hold nothing (all of a column null), which the LZ4 decoder does not expect. */
function withEmpty(compressors: Compressors): Compressors {
  const wrapped = Object.entries(compressors).map(([codec, decompress]) => [
    codec,
    (input: Uint8Array, length: number) => (length === 0 ? new Uint8Array() : decompress(input, length)),
  ]);
  return Object.fromEntries(wrapped) as Compressors;
}

async function bufferOf(handle: FileHandle): Promise<AsyncBuffer> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      const bytes = new Uint8Array(Math.max(0, end - start));
      for (let at = 0; at < bytes.length; ) {
        const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
        if (bytesRead === 0) throw new Error("the file ends early");
        at += bytesRead;
      }
      return bytes.buffer;
    },
  };
}

async function attempt<T>(name: string, what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof RlcliError) throw error;
    return fail("RL6016", `${name} cannot be read as Parquet (${what}): ${messageOf(error)}.`, { cause: error });
  }
}

/** Logical types that are written as bytes and mean something else. */
const MEANT = new Set(["STRING", "ENUM", "UUID", "JSON", "DECIMAL", "FLOAT16"]);
const CONVERTED = new Set(["UTF8", "ENUM", "JSON", "DECIMAL"]);

function refuseBytes(name: string, { element, children, path }: SchemaTree): void {
  for (const child of children) refuseBytes(name, child);
  if (children.length > 0 || !/BYTE_ARRAY$/.test(element.type ?? "")) return;
  if (MEANT.has(element.logical_type?.type ?? "") || CONVERTED.has(element.converted_type ?? "")) return;
  fail(
    "RL6016",
    `${name}: the column \`${path.join(".")}\` holds bytes (an image or the like), which no row of text can. Leave the column out of the file, or write it as text.`,
  );
}

/** Digits of a second's fraction after milliseconds, where there are any. */
function instant(units: bigint, perMillisecond: bigint): string {
  const below = ((units % perMillisecond) + perMillisecond) % perMillisecond;
  const text = iso(Number((units - below) / perMillisecond));
  if (below === 0n) return text;
  return text.replace("Z", `${below.toString().padStart(perMillisecond.toString().length - 1, "0")}Z`);
}

/** Years beyond what ISO text has room for stay the number they are. */
function iso(milliseconds: number): string {
  const date = new Date(milliseconds);
  return Number.isNaN(date.getTime()) ? String(milliseconds) : date.toISOString();
}

const PARSERS: Partial<ParquetParsers> = {
  timestampFromMilliseconds: (value: bigint | undefined) => (value == null ? null : instant(BigInt(value), 1n)),
  timestampFromMicroseconds: (value: bigint | undefined) => (value == null ? null : instant(BigInt(value), 1000n)),
  timestampFromNanoseconds: (value: bigint | undefined) => (value == null ? null : instant(BigInt(value), 1_000_000n)),
  dateFromDays: (days: number | undefined) => (days == null ? null : iso(days * 86_400_000).slice(0, 10)),
};

/** A decoded value as JSON. */
function plain(value: unknown): Json {
  if (value === undefined || value === null) return null;
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : value.toString();
  if (typeof value === "number") return Number.isFinite(value) ? value : null;
  if (typeof value !== "object") return value as Json;
  // What is left of bytes is text that its writer did not mark as UTF-8 (ENUM).
  if (value instanceof Uint8Array) return Buffer.from(value).toString();
  if (Array.isArray(value) || ArrayBuffer.isView(value)) return Array.from(value as ArrayLike<unknown>, plain);
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, plain(inner)]));
}
