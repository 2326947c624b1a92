/**
 * `rlcli import`: other programs' logs in, rows out; a pipe like any other. Rows stream, statistics go to stderr, an
 * output file appears whole or not at all.
 */
import { once } from "node:events";
import { closeSync, createWriteStream, fsync, openSync, readFileSync, type WriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { finished } from "node:stream/promises";
import { promisify } from "node:util";
import { type ConvertRequest, convert, convertInto, expectedShapes, type LineSource } from "../../datasets/convert.ts";
import { noRows } from "../../datasets/dataset.ts";
import { DropFile } from "../../datasets/dropfile.ts";
import { type ImportFields, importOptions, optionFault } from "../../datasets/options.ts";
import { formatNamed } from "../../datasets/registry.ts";
import { RowStatistics } from "../../datasets/statistics.ts";
import { type ImportStatistics, importWarnings, Tally } from "../../datasets/tally.ts";
import { fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { readFault, replaceable, roomIn, temporaryName } from "../../files.ts";
import { shownAddress } from "../../url.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { renderImport, renderRowStatistics } from "../views/import.ts";
import { ImportSources } from "./import-sources.ts";

export interface ImportFlags {
  readonly format: string;
  readonly output: string;
  readonly minMessages: number;
  readonly limit?: number;
  readonly keepTools?: boolean;
  readonly keepThinking?: boolean;
  readonly rolePrefix?: readonly string[];
  readonly choices?: string;
  readonly where?: readonly string[];
  readonly minScore?: number;
  readonly weightBy?: string;
  readonly maxTokens?: number;
  readonly model?: string;
  readonly dedupe?: string;
  readonly nearThreshold?: number;
  readonly sample?: number;
  readonly seed?: number;
  readonly split?: string;
  readonly testShare?: number;
  readonly redact?: boolean;
  readonly redactNames?: string;
  readonly redactPattern?: readonly string[];
  readonly strict?: boolean;
  readonly maxErrors?: number;
  readonly maxLineBytes?: number;
  readonly stats?: boolean;
  readonly dropped?: string;
  readonly threads?: number;
  readonly emitSpec?: boolean;
}

export async function importRows(
  context: CommandContext,
  files: readonly string[],
  flags: ImportFlags,
): Promise<ExitCode> {
  if (flags.emitSpec) {
    const { emitDataset } = await import("./import-spec.ts");
    return emitDataset(context, files, flags, fieldsOf(context, flags));
  }
  const dropped = flags.dropped === undefined ? undefined : new DropFile(resolve(context.cwd, flags.dropped));
  const sources = new ImportSources(context);
  try {
    const code = await importWith(context, files, flags, { dropped, sources: await sources.open(files) });
    if (code === EXIT.done) dropped?.finish();
    return code;
  } finally {
    dropped?.close();
    await sources.close();
  }
}

async function importWith(
  context: CommandContext,
  files: readonly string[],
  flags: ImportFlags,
  { dropped, sources }: { readonly dropped: DropFile | undefined; readonly sources: readonly LineSource[] },
): Promise<ExitCode> {
  const request = { ...(await requestOf(context, flags)), reportsAll: dropped !== undefined };
  const tally = new Tally(dropped && ((line) => dropped.add(line)));
  const statistics = flags.stats ? new RowStatistics() : undefined;
  const rows = (): AsyncGenerator<Buffer> => watched(convert(sources, request, tally), statistics);
  if (flags.output === "-") {
    // Whoever read our output has seen enough: that is no failure, and nobody is left to be told numbers.
    if (!(await writeToStdout(context, rows()))) return EXIT.done;
  } else {
    const { stop } = context.interruption();
    const path = resolve(context.cwd, flags.output);
    const into = (fd: number): AsyncGenerator<void> => until(stop, convertInto(fd, sources, request, tally));
    const writing = {
      rows: () => until(stop, rows()),
      // Counting rows takes looking at them, which they are not once they are in their place.
      ...(statistics ? {} : { into }),
      isStopped: () => stop.aborted,
      isToKeep: () => tally.rows > 0 && !stop.aborted,
    };
    if (!(await writeWhole(path, flags.output, writing)) && stop.aborted) {
      context.err(`Stopped. ${flags.output} was not written.\n`);
      return EXIT.interrupted;
    }
  }
  const counts = tally.statistics();
  if (counts.rows === 0)
    fail(
      "RL6004",
      noRows(
        files.map((file) => (file === "-" ? "standard input" : shownAddress(file))),
        counts,
      ),
    );
  showStatistics(
    context,
    flags,
    counts,
    statistics,
    request.format?.expected ?? expectedShapes(Object.values(counts.formats)),
  );
  return EXIT.done;
}

/** Option names of fields that are not simply written with dashes. */
const FLAG_NAMES: Partial<Record<keyof ImportFields, string>> = { redact_patterns: "--redact-pattern" };
const flagName = (field: keyof ImportFields): string => FLAG_NAMES[field] ?? `--${field.replaceAll("_", "-")}`;

async function requestOf(context: CommandContext, flags: ImportFlags): Promise<ConvertRequest> {
  const { strict } = flags;
  const fields = fieldsOf(context, flags);
  const tokenizer = flags.model === undefined ? undefined : await tokenizerOf(context, flags.model);
  const maxErrors = strict ? 0 : flags.maxErrors;
  return {
    format: flags.format === "auto" ? undefined : formatNamed(flags.format),
    options: importOptions(fields, tokenizer?.digest),
    tokenizerFolder: tokenizer?.folder,
    ...(maxErrors === undefined ? {} : { maxErrors }),
    ...(flags.threads === undefined ? {} : { threads: flags.threads }),
  };
}

/** Flags that say where rows go, what is borne and what is shown, or that are fields under other names. */
const NO_FIELDS: ReadonlySet<string> = new Set<keyof ImportFlags>([
  "format",
  "output",
  "strict",
  "maxErrors",
  "stats",
  "dropped",
  "threads",
  "emitSpec",
  "redactNames",
  "redactPattern",
]);

/** The rules as a spec's `import` block has them. Fails with RL9003 where they contradict each other. */
function fieldsOf(context: CommandContext, flags: ImportFlags): ImportFields {
  const { redactNames, redactPattern } = flags;
  const snake = Object.entries(flags)
    .filter(([name]) => !NO_FIELDS.has(name))
    .map(([name, value]) => [name.replace(/[A-Z]/g, (c) => `_${c.toLowerCase()}`), value]);
  const fields: ImportFields = {
    ...(Object.fromEntries(snake) as ImportFields),
    redact_patterns: redactPattern,
    redact_names: redactNames === undefined ? undefined : readNames(context, redactNames),
  };
  const fault = optionFault(fields, flagName);
  if (fault) fail("RL9003", fault);
  return fields;
}

/** Loaded late: counting tokens is the only part of an import that needs a model. */
async function tokenizerOf(context: CommandContext, model: string): Promise<{ folder: string; digest: string }> {
  const [{ openFolder }, { modelFolder }, { textDigest }] = await Promise.all([
    import("../project.ts"),
    import("../../kinds/model.ts"),
    import("../../tokens/load.ts"),
  ]);
  const folder = await modelFolder(model, openFolder(context).context);
  return { folder, digest: await textDigest(folder) };
}

/** One name a line; empty lines and lines that begin with # say nothing. */
function readNames(context: CommandContext, file: string): string[] {
  try {
    const lines = readFileSync(resolve(context.cwd, file), "utf8")
      .replace(/^\uFEFF/, "")
      .split(/\r?\n/);
    return lines.map((line) => line.trim()).filter((line) => line !== "" && !line.startsWith("#"));
  } catch (error) {
    return fail("RL1001", `${file} ${readFault(error)}.`, { cause: error });
  }
}

async function* watched(rows: AsyncIterable<Buffer>, statistics: RowStatistics | undefined): AsyncGenerator<Buffer> {
  for await (const lines of rows) {
    statistics?.add(lines);
    yield lines;
  }
}

/** False if the reader went away. Waits for a slow reader instead of filling the memory. */
async function writeToStdout({ outputClosed }: CommandContext, rows: AsyncIterable<Buffer>): Promise<boolean> {
  for await (const lines of rows) {
    if (outputClosed.aborted) return false;
    if (process.stdout.write(lines)) continue;
    try {
      await once(process.stdout, "drain", { signal: outputClosed });
    } catch {
      return false;
    }
  }
  return !outputClosed.aborted;
}

/** Values until a signal says stop, whatever they are waiting for then. */
async function* until<T>(stop: AbortSignal, values: AsyncGenerator<T>): AsyncGenerator<T> {
  // No `Promise.race` with the signal: that would hold on to every value until the signal comes.
  let wake: (() => void) | undefined;
  stop.addEventListener("abort", () => wake?.(), { once: true });
  try {
    while (!stop.aborted) {
      const next = await new Promise<IteratorResult<T> | undefined>((resolve, reject) => {
        wake = () => resolve(undefined);
        values.next().then(resolve, reject);
      });
      if (next === undefined || next.done) return;
      yield next.value;
    }
  } finally {
    // A source that says nothing would be waited for without end; the process is about to exit.
    if (!stop.aborted) await values.return(undefined);
  }
}

interface Writing {
  readonly rows: () => AsyncIterable<Buffer>;
  /** Writes them all into an empty file; absent where they have to be seen. */
  readonly into?: (fd: number) => AsyncIterable<void>;
  readonly isStopped: () => boolean;
  /** Whether there is something to keep. */
  readonly isToKeep: () => boolean;
}

/**
 * Writes beside the file and moves it there once complete; false where there is nothing to keep, and nothing is moved. A
 * device is written to.
 */
async function writeWhole(path: string, name: string, { rows, into, isToKeep, isStopped }: Writing): Promise<boolean> {
  const target = replaceable(path);
  const temporary = temporaryName(target ?? path);
  try {
    await mkdir(dirname(path), { recursive: true });
    if (target && into) await writeInto(temporary, { into, isStopped });
    else
      await writeStream(
        target ? createWriteStream(temporary, { flags: "wx", flush: true }) : createWriteStream(path),
        rows(),
      );
    if (!isToKeep()) return false;
    // What is in the file is on the disk. That it has its name need not be: without power there is the old file or this one.
    if (target) await rename(temporary, target);
    return true;
  } catch (error) {
    if (error instanceof RlcliError || !(error as NodeJS.ErrnoException).syscall) throw error;
    return fail("RL6006", `${name} cannot be written: ${messageOf(error)}.`, { cause: error });
  } finally {
    await rm(temporary, { force: true }).catch(() => {});
  }
}

async function writeStream(out: WriteStream, rows: AsyncIterable<Buffer>): Promise<void> {
  out.on("error", () => {});
  for await (const lines of rows) {
    if (!out.write(lines) && !out.errored) await roomIn(out);
    if (out.errored) throw out.errored;
  }
  out.end();
  await finished(out);
}

async function writeInto(
  path: string,
  { into, isStopped }: Required<Pick<Writing, "into" | "isStopped">>,
): Promise<void> {
  const fd = openSync(path, "wx+");
  try {
    for await (const _ of into(fd));
    if (!isStopped()) await promisify(fsync)(fd);
  } finally {
    // What was stopped may still be about to write, and must not write to another file of the same number.
    if (!isStopped()) closeSync(fd);
  }
}

function showStatistics(
  context: CommandContext,
  flags: ImportFlags,
  counts: ImportStatistics,
  statistics: RowStatistics | undefined,
  expected: string,
): void {
  if (context.isJson) {
    const stats = statistics ? { stats: statistics.summary() } : {};
    const json = `${JSON.stringify({ formatVersion: 1, ...counts, ...stats })}\n`;
    // Standard output may be the rows themselves.
    if (flags.output === "-") context.err(json);
    else context.out(json);
    return;
  }
  context.report(importWarnings(counts, expected));
  context.err(renderImport(counts, context.style));
  if (statistics) context.err(renderRowStatistics(statistics.summary()));
}
