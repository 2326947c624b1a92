/**
 * `rlcli import`: other programs' logs in, rows out; a pipe like any other. Rows stream, statistics go to stderr, an
 * output file appears whole or not at all.
 */
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { finished } from "node:stream/promises";
import { convert, expectedShapes, type ImportOptions, type LineSource } from "../../datasets/convert.ts";
import { noRows } from "../../datasets/dataset.ts";
import { formatNamed } from "../../datasets/registry.ts";
import { findSources, openSource } from "../../datasets/sources.ts";
import { type ImportStatistics, importWarnings, Tally } from "../../datasets/tally.ts";
import { fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { replaceable, syncFolder, temporaryName } from "../../files.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { renderImport } from "../views/import.ts";

export interface ImportFlags {
  readonly format: string;
  readonly output: string;
  readonly minMessages: number;
  readonly limit?: number;
  readonly tools?: "keep" | "drop";
}

export async function importRows(
  context: CommandContext,
  files: readonly string[],
  flags: ImportFlags,
): Promise<ExitCode> {
  const format = flags.format === "auto" ? undefined : formatNamed(flags.format);
  const options: ImportOptions = {
    min_messages: flags.minMessages,
    ...(flags.limit === undefined ? {} : { limit: flags.limit }),
    ...(flags.tools === undefined ? {} : { tools: flags.tools }),
  };
  const tally = new Tally();
  const sources = await openSources(context, files);
  const rows = convert(sources, format, options, tally);
  const isWhole = await (flags.output === "-"
    ? writeToStdout(context, rows)
    : writeWhole(resolve(context.cwd, flags.output), flags.output, rows, () => tally.rows > 0));
  // Whoever read our output has seen enough: that is no failure, and nobody is left to be told numbers.
  if (!isWhole) return EXIT.done;
  const statistics = tally.statistics();
  if (statistics.rows === 0) fail("RL6004", noRows(files, statistics));
  showStatistics(context, flags, statistics, format?.expected ?? expectedShapes());
  return EXIT.done;
}

async function openSources(context: CommandContext, files: readonly string[]): Promise<LineSource[]> {
  const sources: LineSource[] = [];
  for (const file of files) {
    if (file !== "-") sources.push(...(await findSources([file], context.cwd)).map((found) => openSource(found)));
    else if (process.stdin.isTTY) fail("RL9003", "`-` reads from standard input, and nothing is piped in.");
    else sources.push({ name: "<stdin>", bytes: process.stdin });
  }
  return sources;
}

/** False if the reader went away. Waits for a slow reader instead of filling the memory. */
async function writeToStdout({ outputClosed }: CommandContext, rows: AsyncIterable<string>): Promise<boolean> {
  for await (const row of rows) {
    if (outputClosed.aborted) return false;
    if (process.stdout.write(`${row}\n`)) continue;
    try {
      await once(process.stdout, "drain", { signal: outputClosed });
    } catch {
      return false;
    }
  }
  return !outputClosed.aborted;
}

/** Writes beside the file and moves it there once complete; nothing is moved where there is nothing to keep. A device is written to. */
async function writeWhole(
  path: string,
  name: string,
  rows: AsyncIterable<string>,
  hasRows: () => boolean,
): Promise<true> {
  const target = replaceable(path);
  const temporary = temporaryName(target ?? path);
  try {
    await mkdir(dirname(path), { recursive: true });
    const out = target ? createWriteStream(temporary, { flags: "wx", flush: true }) : createWriteStream(path);
    out.on("error", () => {});
    for await (const row of rows) {
      if (!out.write(`${row}\n`) && !out.errored) await Promise.race([once(out, "drain"), once(out, "close")]);
      if (out.errored) throw out.errored;
    }
    out.end();
    await finished(out);
    if (target && hasRows()) {
      await rename(temporary, target);
      syncFolder(dirname(target));
    }
    return true;
  } catch (error) {
    if (error instanceof RlcliError || !(error as NodeJS.ErrnoException).syscall) throw error;
    return fail("RL6006", `${name} cannot be written: ${messageOf(error)}.`, { cause: error });
  } finally {
    await rm(temporary, { force: true }).catch(() => {});
  }
}

function showStatistics(
  context: CommandContext,
  flags: ImportFlags,
  statistics: ImportStatistics,
  expected: string,
): void {
  if (context.isJson) {
    const json = `${JSON.stringify({ formatVersion: 1, ...statistics })}\n`;
    // Standard output may be the rows themselves.
    if (flags.output === "-") context.err(json);
    else context.out(json);
    return;
  }
  context.report(importWarnings(statistics, expected));
  context.err(renderImport(statistics, context.style));
}
