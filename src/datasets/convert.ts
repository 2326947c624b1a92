/** The stream at the heart of every import: sources in, canonical rows and a tally of everything left out. */
import type { Format, FormatOptions } from "./format.ts";
import { type JsonLine, jsonLines } from "./lines.ts";
import { detectFormat, FORMATS } from "./registry.ts";
import { applyRules, RejectedRow, type Row, type RowRules } from "./row.ts";
import type { Tally } from "./tally.ts";

export interface ImportOptions extends RowRules {
  /** At most this many rows, in the order of the sources. */
  readonly limit?: number;
  /** By default `messages` keeps tool turns and `openai` drops them. */
  readonly tools?: FormatOptions["tools"];
}

/** Something to read rows from. */
export interface LineSource {
  /** As the user named it. */
  readonly name: string;
  readonly bytes: AsyncIterable<Uint8Array>;
}

/** Lines that `auto` looks at in a source before it gives up. */
const LOOK_AHEAD = 200;

/** Canonical JSON of one row, as a line without its newline. */
const rowLine = (row: Row): string => JSON.stringify(row);

/**
 * Converts sources one after another, giving each row as its line of canonical JSON, without the newline. `format` undefined means `auto`: each source is the format that its first
 * recognisable line is. Everything that gave no row is in `tally`. Stops reading once `limit` rows are out.
 */
export async function* convert(
  sources: AsyncIterable<LineSource> | Iterable<LineSource>,
  format: Format | undefined,
  options: ImportOptions,
  tally: Tally,
): AsyncGenerator<string> {
  const limit = options.limit ?? Number.POSITIVE_INFINITY;
  for await (const source of sources) {
    if (tally.rows >= limit) return;
    for await (const { line, found } of withFormat(source, format, tally)) {
      tally.lines += 1;
      for (const row of readLine(source.name, line, found, options, tally)) {
        yield row;
        tally.rows += 1;
        if (tally.rows >= limit) return;
      }
    }
  }
}

/** Lines of a source, each with the source's format; without one where `auto` recognised nothing. */
async function* withFormat(source: LineSource, fixed: Format | undefined, tally: Tally) {
  let found = fixed;
  const waiting: JsonLine[] = [];
  for await (const line of jsonLines(source.bytes)) {
    found ??= "value" in line ? detectFormat(line.value) : undefined;
    waiting.push(line);
    if (!found && waiting.length < LOOK_AHEAD) continue;
    for (const held of waiting.splice(0)) yield { line: held, found };
  }
  for (const held of waiting) yield { line: held, found };
  if (found) tally.sawFormat(source.name, found.name);
}

function readLine(
  file: string,
  line: JsonLine,
  format: Format | undefined,
  options: ImportOptions,
  tally: Tally,
): readonly string[] {
  try {
    if ("rejected" in line) throw line.rejected;
    if (!format) throw new RejectedRow("damaged", "no known format");
    const tools = options.tools ?? (format.name === "messages" ? "keep" : "drop");
    const { rows, toolTurns } = format.read(line.value, { tools });
    tally.toolTurns += toolTurns;
    return rows.flatMap((row) => {
      const ruled = applyRules(row, options);
      tally.emptyTurns += ruled.emptyTurns;
      return [rowLine(ruled.row)];
    });
  } catch (error) {
    if (error instanceof RejectedRow) tally.reject(file, line.line, error);
    else if (error instanceof RangeError)
      tally.reject(file, line.line, new RejectedRow("damaged", "nested too deeply"));
    else throw error;
    return [];
  }
}

/** The forms that a diagnostic shows when nothing was recognised. */
export const expectedShapes = (): string => FORMATS.map((f) => `${f.name}: ${f.expected}`).join("; ");
