/**
 * Tables as sources: CSV and Parquet files give one JSON object a row. They reach everything that reads rows as lines of JSON, each on
 * the line (or, for Parquet, with the number) that it has in the file.
 */
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import type { RejectedRow } from "./row.ts";
import { csvRecords } from "./tables/csv.ts";
import { parquetRecords } from "./tables/parquet.ts";
import type { TableRecord } from "./tables/record.ts";

/** Raised whenever an equal table would give other rows than before. */
export const TABLE_VERSION = 1;

export type TableForm = "csv" | "parquet";

/** What a file is read as, by its name; undefined for JSON. */
export function tableForm(name: string): TableForm | undefined {
  if (/\.(csv|tsv)(\.(gz|zst))?$/i.test(name)) return "csv";
  return /\.(parquet|pq)$/i.test(name) ? "parquet" : undefined;
}

interface LineOptions {
  /** Nulls within rows stay. Else they are left out of objects, since a column of structs has all fields in every row. */
  readonly keepsNulls?: boolean | undefined;
  /** Told of rows that cannot be taken; without it they stand as lines that no reader takes for rows. */
  readonly onDamaged?: ((line: number, rejected: RejectedRow) => void) | undefined;
}

export interface TableSource extends LineOptions {
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  readonly form: TableForm;
  /** Sees every byte of the file. */
  readonly tap?: ((chunk: Uint8Array) => void) | undefined;
}

/** Lines of JSON are handed on in pieces of about this many characters. */
const PIECE_LENGTH = 1 << 16;

/** The rows as lines of JSON, in UTF-8. Fails with RL6016, and with what the file system says. */
export function tableLines(source: TableSource): AsyncGenerator<Buffer> {
  return linesOf(recordsOf(source), source);
}

/** The same of CSV that is no file here. */
export function csvLines(name: string, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Buffer> {
  return linesOf(csvRecords(name, chunks), {});
}

async function* linesOf(records: AsyncIterable<TableRecord>, options: LineOptions): AsyncGenerator<Buffer> {
  let piece = "";
  let next = 1;
  for await (const record of records) {
    // Lines that a record went over, or that were empty.
    piece += "\n".repeat(Math.max(0, record.line - next));
    next = Math.max(next, record.line) + 1;
    piece += `${lineOf(record, options)}\n`;
    if (piece.length < PIECE_LENGTH) continue;
    yield Buffer.from(piece);
    piece = "";
  }
  if (piece !== "") yield Buffer.from(piece);
}

function lineOf(record: TableRecord, { keepsNulls, onDamaged }: LineOptions): string {
  if ("value" in record) return JSON.stringify(record.value, keepsNulls ? undefined : withoutNull);
  if (!onDamaged) return record.rejected.reason;
  onDamaged(record.line, record.rejected);
  return "";
}

/** For JSON.stringify: in lists, where place matters, it writes null again. */
const withoutNull = (_: string, value: unknown): unknown => value ?? undefined;

function recordsOf({ name, path, form, tap }: TableSource): AsyncGenerator<TableRecord> {
  return form === "csv" ? csvRecords(name, fileChunks(path, tap)) : parquetOf(name, path, tap);
}

/** The bytes of a file. */
export async function* fileChunks(path: string, tap: TableSource["tap"]): AsyncGenerator<Buffer> {
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 19 })) {
    tap?.(chunk as Buffer);
    yield chunk as Buffer;
  }
}

/** Parquet is read from its end and by parts, so that its bytes pass by beforehand; it must not change in between. */
async function* parquetOf(name: string, path: string, tap: TableSource["tap"]): AsyncGenerator<TableRecord> {
  const before = await stat(path);
  if (tap) for await (const chunk of fileChunks(path, tap)) void chunk;
  yield* parquetRecords(name, path);
  const after = await stat(path);
  if (after.mtimeMs !== before.mtimeMs || after.size !== before.size || after.ino !== before.ino)
    throw Object.assign(new Error("it changed while it was read"), { syscall: "read" });
}
