/**
 * Imports a dataset into a folder named by its digest: `rows.jsonl` and `manifest.json`, written beside and moved into
 * place, so that a folder that exists is whole. An import that is there already is not repeated.
 */
import { createHash, type Hash } from "node:crypto";
import { createWriteStream } from "node:fs";
import { mkdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { finished } from "node:stream/promises";
import { fail, messageOf, RlcliError } from "../diagnostic.ts";
import { type Digest, shortDigest } from "../digest.ts";
import { roomIn, syncFolder, temporaryName, writeFileWhole } from "../files.ts";
import { convert, expectedShapes } from "./convert.ts";
import { tasksFormat } from "./formats/tasks.ts";
import {
  type DatasetIdentity,
  type DatasetRequest,
  type DatasetSource,
  type DiagnosticPlace,
  datasetIdentity,
  IMPORTER_VERSION,
  identityDigest,
  sourceFiles,
} from "./identity.ts";
import { formatNamed } from "./registry.ts";
import type { RejectedRow } from "./row.ts";
import { openSource, type SourceFile } from "./sources.ts";
import { describeRejected, type ImportStatistics, Tally } from "./tally.ts";

export const MANIFEST_VERSION = 1;

export interface DatasetManifest extends DatasetIdentity, ImportStatistics {
  readonly formatVersion: typeof MANIFEST_VERSION;
  /** Version of the importer's rules. */
  readonly importer: number;
  readonly format: string;
  readonly options: DatasetRequest["options"];
  /** Bytes of rows.jsonl. */
  readonly bytes: number;
}

export { type DatasetIdentity, type DatasetRequest, datasetIdentity } from "./identity.ts";

export interface ImportContext extends DiagnosticPlace {
  /** The dataset's folder goes into this one. Absolute. */
  readonly outFolder: string;
  readonly signal?: AbortSignal;
  /** The identity that was planned: other content is RL6007. */
  readonly expect?: Digest;
}

/** Where an import of a digest lies. */
export function datasetFolder(outFolder: string, digest: string): string {
  return join(outFolder, shortDigest(digest));
}

export function rowsPath(outFolder: string, digest: string): string {
  return join(datasetFolder(outFolder, digest), "rows.jsonl");
}

export function manifestPath(outFolder: string, digest: string): string {
  return join(datasetFolder(outFolder, digest), "manifest.json");
}

/** The manifest of a finished import; undefined if there is none, or if it is not of this digest. */
export async function readManifest(outFolder: string, digest: string): Promise<DatasetManifest | undefined> {
  try {
    const text = await readFile(manifestPath(outFolder, digest), "utf8");
    const manifest = JSON.parse(text) as DatasetManifest;
    return manifest.digest === digest && manifest.formatVersion === MANIFEST_VERSION ? manifest : undefined;
  } catch {
    return undefined;
  }
}

/** A dataset that nothing uses does not show what it is for. */
export const MAYBE_TASKS =
  " Rows that are tasks, no conversations, need `rows: tasks` where no environment uses the dataset.";

/**
 * Imports, or finds what was imported before. Fails with RL6001/RL6002 (sources), RL6003 (format), RL6004 (no row came
 * out), RL6006 (the folder cannot be written) or RL6007 (other content than expected).
 */
export async function importDataset(request: DatasetRequest, context: ImportContext): Promise<DatasetManifest> {
  const { outFolder, address, range } = context;
  const place = { address, range };
  const format = request.format === "auto" ? undefined : formatNamed(request.format);
  const known = context.expect ?? (await datasetIdentity(request, { ...place })).digest;
  const done = await readManifest(outFolder, known);
  if (done) return done;

  const tally = new Tally();
  const reader = new HashedSources(await sourceFiles(request, place), tally, request);
  const temporary = temporaryName(join(outFolder, "import"));
  try {
    await mkdir(temporary, { recursive: true });
    const { options, isVerbatim, tokenizerFolder, maxErrors } = request;
    const rows = convert(
      reader.open(),
      {
        format,
        options,
        isVerbatim: isVerbatim ?? false,
        tokenizerFolder,
        ...(maxErrors === undefined ? {} : { maxErrors }),
      },
      tally,
    );
    const bytes = await writeRows(rows, join(temporary, "rows.jsonl"), context.signal);
    const sources = await reader.finish();
    const digest = identityDigest(request, sources);
    if (context.expect !== undefined && digest !== context.expect) fail("RL6007", changed(request.from), place);
    const statistics = tally.statistics();
    if (statistics.rows === 0)
      fail(
        "RL6004",
        noRows(request.from, statistics, request.format === tasksFormat.name ? tasksFormat.expected : undefined) +
          (isVerbatim && request.format !== tasksFormat.name ? MAYBE_TASKS : ""),
        place,
      );
    const manifest: DatasetManifest = {
      formatVersion: MANIFEST_VERSION,
      importer: IMPORTER_VERSION,
      format: request.format,
      options,
      digest,
      sources,
      bytes,
      ...statistics,
    };
    writeFileWhole(join(temporary, "manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
    await moveIntoPlace(temporary, datasetFolder(outFolder, digest));
    syncFolder(outFolder);
    return manifest;
  } catch (error) {
    if (error instanceof RlcliError || !(error as NodeJS.ErrnoException).syscall) throw error;
    const detail = `The dataset cannot be written to ${outFolder}: ${messageOf(error)}.`;
    return fail("RL6006", detail, { ...place, cause: error });
  } finally {
    await rm(temporary, { recursive: true, force: true }).catch(() => {});
  }
}

const changed = (from: readonly string[]) =>
  `${from.join(", ")} changed after the plan was made. Nothing was imported; plan again.`;

/** Replaces what a crashed or older import may have left under the same name. */
async function moveIntoPlace(temporary: string, folder: string): Promise<void> {
  try {
    await rename(temporary, folder);
  } catch (error) {
    if (!["ENOTEMPTY", "EEXIST"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    await rm(folder, { recursive: true, force: true });
    await rename(temporary, folder);
  }
}

/** Writes rows as lines, synced; returns the bytes. */
async function writeRows(rows: AsyncIterable<Buffer>, path: string, signal?: AbortSignal) {
  const out = createWriteStream(path, { flush: true });
  // The stream's error is reported by `finished` below; without a listener it would end the process first.
  out.on("error", () => {});
  let bytes = 0;
  for await (const lines of rows) {
    signal?.throwIfAborted();
    bytes += lines.length;
    if (!out.write(lines) && !out.errored) await roomIn(out);
    if (out.errored) throw out.errored;
  }
  out.end();
  await finished(out);
  return bytes;
}

/** Reads files once, hashing what goes by, so that the digest is of the bytes that were imported. */
class HashedSources {
  readonly #files: readonly SourceFile[];
  readonly #hashes: { file: SourceFile; hash: Hash; bytes: number; rest: AsyncIterator<Uint8Array> }[] = [];
  readonly #tally: Tally;
  readonly #maxErrors: number;
  readonly #keepsNulls: boolean;
  constructor(files: readonly SourceFile[], tally: Tally, { maxErrors, format }: DatasetRequest) {
    this.#files = files;
    this.#tally = tally;
    this.#maxErrors = maxErrors ?? Number.POSITIVE_INFINITY;
    this.#keepsNulls = format === tasksFormat.name;
  }
  *open() {
    for (const file of this.#files) yield this.#open(file);
  }
  #open(file: SourceFile) {
    const entry = { file, hash: createHash("sha256"), bytes: 0 };
    const source = openSource(file, {
      keepsNulls: this.#keepsNulls,
      tap: (chunk) => {
        entry.hash.update(chunk);
        entry.bytes += chunk.length;
      },
      onDamaged: (line, rejected) => this.#damaged(file.name, line, rejected),
    });
    const rest = source.bytes[Symbol.asyncIterator]();
    this.#hashes.push(Object.assign(entry, { rest }));
    // Without `return`, a reader that stops early leaves the rest to `finish`.
    return { ...source, bytes: { [Symbol.asyncIterator]: () => ({ next: () => rest.next() }) } };
  }
  /** A table's row that is no line of JSON. */
  #damaged(name: string, line: number, rejected: RejectedRow): void {
    this.#tally.lines += 1;
    this.#tally.reject(name, rejected, { line, column: 1 });
    if (this.#tally.damaged <= this.#maxErrors) return;
    fail("RL6014", `More than ${this.#maxErrors} lines are damaged, the last at ${name}:${line}: ${rejected.reason}.`);
  }
  /** Reads on to the end of every file, also of those that a limit made unnecessary. */
  async finish(): Promise<DatasetSource[]> {
    for (const file of this.#files.slice(this.#hashes.length)) this.#open(file);
    const sources: DatasetSource[] = [];
    for (const entry of this.#hashes) {
      while (!(await entry.rest.next()).done);
      const digest = entry.file.identity ?? (`sha256:${entry.hash.digest("hex")}` as const);
      const { name, path } = entry.file;
      sources.push({ name, path, digest, bytes: entry.bytes });
    }
    return sources;
  }
}

/** Why an import gave nothing. */
export function noRows(
  from: readonly string[],
  { lines, rejected }: ImportStatistics,
  expected = `one of: ${expectedShapes()}`,
): string {
  const names = from.join(", ");
  if (lines === 0) return `There is no line in ${names}. A line should look like ${expected}.`;
  const reasons = rejected.map(describeRejected).join("; ");
  return `${lines === 1 ? "The one line" : `None of the ${lines} lines`} of ${names} gave ${lines === 1 ? "no" : "a"} row. ${reasons}. A line should look like ${expected}.`;
}
