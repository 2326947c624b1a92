/** Which files an import reads: names and globs, relative to a folder, in a fixed order. */
import { type Stats, statSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join, resolve, sep } from "node:path";
import { fail } from "../diagnostic.ts";
import type { Digest } from "../digest.ts";
import { readFault } from "../files.ts";
import type { LineSource } from "./convert.ts";
import type { DiagnosticPlace } from "./identity.ts";
import { PlainFile } from "./plainfile.ts";
import type { RejectedRow } from "./row.ts";
import { csvLines, fileChunks, tableForm, tableLines } from "./tables.ts";

export interface SourceFile {
  /** As the user named it, or as the glob found it: relative names stay relative. */
  readonly name: string;
  /** Absolute. */
  readonly path: string;
  /** What the content is known by other than its digest (an address and its ETag); whoever brought the file saw to it. */
  readonly identity?: Digest;
}

/** Named pipes, and what shells make of `<(command)`. */
const isPipe = (info: Stats): boolean => info.isFIFO() || info.isCharacterDevice();

const isGlob = (pattern: string) => /[*?[{]/.test(pattern);

/** One path segment of a glob as a pattern: `*`, `?`, `[a-z]`, `{a,b}`. */
function segmentPattern(segment: string): RegExp {
  const body = segment.replace(/[.+^$()|\\]|\*+|\?|\{[^{}]*\}|[{}]/g, (part) => {
    if (part.startsWith("*")) return "[^/]*";
    if (part === "?") return "[^/]";
    if (part.startsWith("{") && part.length > 1) {
      const options = part.slice(1, -1).split(",");
      return `(?:${options.map((o) => o.replace(/[.+^$()|\\*?]/g, "\\$&")).join("|")})`;
    }
    return `\\${part}`;
  });
  return new RegExp(`^${body.replaceAll("[!", "[^")}$`, "s");
}

async function entriesOf(folder: string) {
  try {
    return (await readdir(folder, { withFileTypes: true })).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
}

/** Files that match, in the order of their names. `**` stands for any number of folders; dot files must be asked for. */
async function* walk(folder: string, name: string, segments: readonly string[]): AsyncGenerator<SourceFile> {
  const [segment, ...rest] = segments;
  if (segment === undefined) return;
  if (segment === "**") yield* walk(folder, name, rest);
  const pattern = segmentPattern(segment === "**" ? "*" : segment);
  for (const entry of await entriesOf(folder)) {
    if (!pattern.test(entry.name) || (entry.name.startsWith(".") && !segment.startsWith("."))) continue;
    const inner = { name: name + entry.name, path: join(folder, entry.name) };
    const isFolder = entry.isDirectory() || (entry.isSymbolicLink() && (await stat(inner.path)).isDirectory());
    if (isFolder && segment === "**") yield* walk(inner.path, `${inner.name}/`, segments);
    else if (isFolder) yield* walk(inner.path, `${inner.name}/`, rest);
    else if (rest.length === 0 && segment !== "**") yield inner;
  }
}

/** What a folder is searched for. */
const LOG_NAME = /\.(jsonl|ndjson|json)(\.(gz|zst))?$/i;

/** The logs in a folder and those below it. */
async function folderFiles(name: string, path: string, place: DiagnosticPlace): Promise<SourceFile[]> {
  const files: SourceFile[] = [];
  for await (const file of walk(path, `${name.replace(/\/+$/, "")}/`, ["**", "*"]))
    if (LOG_NAME.test(file.path)) files.push(file);
  if (files.length === 0) {
    fail(
      "RL6002",
      `The folder ${name} holds no .jsonl, .ndjson or .json file (also as .gz or .zst). For others write ${name}/*.`,
      where(place),
    );
  }
  return files;
}

async function expand(pattern: string, baseFolder: string, place: DiagnosticPlace): Promise<SourceFile[]> {
  const path = resolve(baseFolder, pattern);
  if ((await stat(path).catch(() => undefined))?.isDirectory()) return folderFiles(pattern, path, place);
  if (!isGlob(pattern) || (await isFile(path))) return [{ name: pattern, path }];
  const segments = pattern.split(/[/\\]/);
  const firstGlob = segments.findIndex(isGlob);
  const fixed = segments.slice(0, firstGlob);
  const prefix = fixed.length > 0 ? `${fixed.join("/")}/` : "";
  const start = resolve(baseFolder, fixed.join(sep) || (pattern.startsWith("/") ? "/" : "."));
  const files: SourceFile[] = [];
  for await (const file of walk(start, prefix, segments.slice(firstGlob))) files.push(file);
  if (files.length === 0) {
    fail(
      "RL6002",
      `No file matches ${pattern} in ${baseFolder}. Check the pattern, or write the file's name.`,
      where(place),
    );
  }
  return files;
}

/** Only what a diagnostic takes from a context. */
const where = ({ address, range }: DiagnosticPlace): DiagnosticPlace => ({ address, range });

async function isFile(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isFile() ?? false;
}

/**
 * The files that `from` names, each once, in the order of the list and within a glob by name. Fails with RL6001 for
 * one that is missing or not a file, and with RL6002 for a glob without a match.
 */
export async function findSources(
  from: readonly string[],
  baseFolder: string,
  place: DiagnosticPlace = {},
): Promise<SourceFile[]> {
  const found = new Map<string, SourceFile>();
  for (const pattern of from) {
    for (const file of await expand(pattern, baseFolder, place)) if (!found.has(file.path)) found.set(file.path, file);
  }
  for (const { name, path } of found.values()) {
    const info = await stat(path).catch((error: unknown) => unreadable(name, error, place));
    if (!info.isFile() && !isPipe(info)) fail("RL6001", `${name} is not a file.`, where(place));
  }
  return [...found.values()];
}

export function unreadable(name: string, error: unknown, place: DiagnosticPlace = {}): never {
  return fail("RL6001", `${name} ${readFault(error)}.`, { ...where(place), cause: error });
}

export interface OpenOptions {
  /** Nulls in a table's rows stay, as tasks want it. */
  readonly keepsNulls?: boolean;
  /** Sees every byte that is read. */
  readonly tap?: (chunk: Uint8Array) => void;
  /** Told of a table's rows that cannot be taken. */
  readonly onDamaged?: (line: number, rejected: RejectedRow) => void;
}

function openPlain(name: string, path: string): PlainFile | undefined {
  const onError = (error: unknown): never => unreadable(name, error);
  return PlainFile.open(path, onError);
}

/** Opens a file as a source of lines; tables (CSV, Parquet) give a line of JSON for each row. */
export function openSource({ name, path }: SourceFile, options: OpenOptions = {}): LineSource {
  const form = tableForm(name);
  const content = form ? tableLines({ ...options, name, path, form }) : fileChunks(path, options.tap);
  async function* bytes(): AsyncGenerator<Uint8Array> {
    try {
      yield* content;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).syscall) unreadable(name, error);
      throw error;
    }
  }
  return {
    name,
    bytes: bytes(),
    ...(form || !statSync(path).isFile() ? {} : { reopen: () => fileChunks(path, undefined) }),
    ...(form || options.tap || !statSync(path).isFile() ? {} : { openPlain: () => openPlain(name, path) }),
  };
}

/** The same for what is no file here but comes as chunks, from its beginning whenever it is opened. Parquet needs a file. */
export function openChunks(name: string, open: () => AsyncIterable<Uint8Array>): LineSource {
  if (tableForm(name) === "csv") return { name, bytes: csvLines(name, open()) };
  return { name, bytes: open(), reopen: open };
}
