/**
 * CSV as programs write it (RFC 4180 and its relatives): the first record names the fields, every value is text. Quotes, line
 * breaks in quotes and either kind of line end are understood, gzip and UTF-16 are unpacked, empty lines passed over.
 */
import { once } from "node:events";
import type { CsvError, InfoRecord, Parser } from "csv-parse";
import { fail, messageOf } from "../../diagnostic.ts";
import { type Chunks, decoded, type SourceFault } from "../decode.ts";
import { DEFAULT_LINE_BYTES } from "../options.ts";
import { damaged } from "../row.ts";
import type { TableRecord } from "./record.ts";

interface Parsed {
  readonly line: number;
  readonly record: readonly string[];
}

/** Bytes in which the header is looked for to tell the delimiter. */
const HEAD_BYTES = 1 << 16;

/**
 * Records of one file, in order; `line` is the record's first. A record with more or fewer fields than the header is damaged.
 * Fails with RL6016 where what follows cannot be trusted: a quote that does not close, text that is not UTF-8, a header
 * that names two fields alike.
 */
export async function* csvRecords(name: string, chunks: Chunks): AsyncGenerator<TableRecord> {
  let fields: readonly string[] | undefined;
  for await (const { record, line } of parsed(name, chunks)) {
    if (!fields) fields = header(name, record, line);
    else if (record.length !== fields.length)
      yield {
        line,
        rejected: damaged(
          `${record.length} ${record.length === 1 ? "field" : "fields"}, the header names ${fields.length}`,
        ),
      };
    else yield { line, value: rowOf(fields, record) };
  }
}

/** A field may be called `__proto__`. */
function rowOf(fields: readonly string[], record: readonly string[]): Record<string, string> {
  return Object.fromEntries(fields.map((field, i) => [field, record[i] as string]));
}

function header(name: string, record: readonly string[], line: number): readonly string[] {
  const seen = new Set<string>();
  for (const field of record) {
    if (seen.has(field)) broken(name, line, `two columns are called ${JSON.stringify(field)}`);
    seen.add(field);
  }
  return record;
}

/** Where records begin. The parser's own count of lines takes a CRLF within quotes for two. */
class LineCount {
  #tooMany = 0;
  /** The line after the last record. */
  next = 1;

  startOf(record: readonly string[], { lines }: InfoRecord): number {
    let inside = 0;
    for (const value of record) {
      if (!value.includes("\n")) continue;
      inside += value.split("\n").length - 1;
      this.#tooMany += value.split("\r\n").length - 1;
    }
    const last = lines - this.#tooMany;
    this.next = last + 1;
    return last - inside;
  }
}

async function* parsed(name: string, chunks: Chunks): AsyncGenerator<Parsed> {
  const { parse } = await import("csv-parse");
  const [head, texts] = await headOf(utf8Of(name, chunks));
  const lines = new LineCount();
  const starts: number[] = [];
  const parser = parse({
    delimiter: delimiterOf(name, head),
    on_record: (record: string[], info) => {
      starts.push(lines.startOf(record, info));
      return record;
    },
    relax_column_count: true,
    // A quote inside a value that is not quoted is one.
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: DEFAULT_LINE_BYTES,
  });
  const feeding = feed(texts, parser);
  try {
    for await (const record of parser) yield { line: starts.shift() as number, record: record as string[] };
  } catch (error) {
    const { code } = error as CsvError;
    if (!code?.startsWith("CSV_")) throw error;
    broken(name, lines.next, csvFault(code, error));
  } finally {
    parser.destroy();
    await feeding;
  }
}

/** Hands texts over as fast as they are parsed. What goes wrong on the way is the parser's error. */
async function feed(texts: AsyncIterable<string>, parser: Parser): Promise<void> {
  try {
    for await (const text of texts) {
      if (parser.destroyed) return;
      if (!parser.write(text)) await Promise.race([once(parser, "drain"), once(parser, "close")]);
    }
    parser.end();
  } catch (error) {
    parser.destroy(error as Error);
  }
}

async function* utf8Of(name: string, chunks: Chunks): AsyncGenerator<string> {
  let fault: SourceFault | undefined;
  const decoder = new TextDecoder("utf-8", { fatal: true });
  const text = (bytes?: Buffer): string => {
    try {
      return bytes ? decoder.decode(bytes, { stream: true }) : decoder.decode();
    } catch {
      return fail("RL6016", `${name} is not UTF-8. Save it as UTF-8 (spreadsheets call it "CSV UTF-8").`);
    }
  };
  for await (const chunk of decoded(chunks, (found) => {
    fault = found;
  }))
    yield text(chunk);
  if (fault) fail("RL6016", `${name}: ${fault.message}.`);
  yield text();
}

/** The beginning of a text, and all of it again. */
async function headOf(texts: AsyncGenerator<string>): Promise<[string, AsyncIterable<string>]> {
  let head = "";
  let isWhole = false;
  while (head.length < HEAD_BYTES && !isWhole) {
    const next = await texts.next();
    if (next.done) isWhole = true;
    else head += next.value;
  }
  async function* all() {
    yield head;
    if (!isWhole) yield* texts;
  }
  return [head, all()];
}

/** Commas, or what stands in the header instead of them: semicolons, as spreadsheets write where a comma is decimal, or tabs. */
function delimiterOf(name: string, head: string): string {
  if (/\.tsv(\.|$)/i.test(name)) return "\t";
  const line =
    head
      .replace(/"(?:[^"]|"")*"/g, "")
      .split(/[\r\n]/)
      .find((text) => text.trim() !== "") ?? "";
  if (line.includes(",")) return ",";
  return [";", "\t"].find((delimiter) => line.includes(delimiter)) ?? ",";
}

function csvFault(code: string, error: unknown): string {
  if (code === "CSV_QUOTE_NOT_CLOSED") return "a quote that opens in the record beginning here does not close";
  if (code === "CSV_MAX_RECORD_SIZE")
    return `the record is longer than ${DEFAULT_LINE_BYTES} bytes, as when a quote does not close`;
  return messageOf(error);
}

function broken(name: string, line: number, why: string): never {
  return fail("RL6016", `${name}:${line}: ${why}. Mend the file; nothing of it was taken.`);
}
