/** What `rlcli init` finds out by looking: logs in a folder and their form, GPUs, a Docker daemon. Reads heads of files only. */
import { closeSync, type Dirent, openSync, readdirSync, readSync } from "node:fs";
import { extname, join } from "node:path";
import { constants, gunzipSync } from "node:zlib";
import { detectFormat } from "../../datasets/registry.ts";

export interface FoundLogs {
  /** As an import would name it. */
  readonly format: string;
  /** Paths below the folder; one glob where a subfolder's files all are of this format. */
  readonly from: readonly string[];
  readonly files: number;
}

const DEEPEST = 3;
const MOST_FILES = 500;
const HEAD_BYTES = 1 << 18;
const LINES = 20;
const LOG_NAME = /\.(jsonl|ndjson|json)(\.gz)?$/i;
const SKIPPED = /^(node_modules|dist|build|venv|__pycache__)$/;

/** The logs below a folder, the most files of one format; undefined where there are none. */
export function findLogs(folder: string): FoundLogs | undefined {
  const byFormat = new Map<string, string[]>();
  for (const name of logFiles(folder, "", DEEPEST)) {
    const format = formatOf(join(folder, name));
    if (format !== undefined) byFormat.set(format, [...(byFormat.get(format) ?? []), name]);
  }
  const [best] = [...byFormat].sort(([, a], [, b]) => b.length - a.length);
  if (best === undefined) return undefined;
  const [format, names] = best;
  return { format, from: patternsOf(folder, names), files: names.length };
}

function logFiles(folder: string, below: string, depth: number): string[] {
  let entries: Dirent[];
  try {
    entries = readdirSync(join(folder, below), { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  } catch {
    return [];
  }
  return entries
    .filter(({ name }) => !name.startsWith(".") && !SKIPPED.test(name))
    .flatMap((entry) => {
      const name = below === "" ? entry.name : `${below}/${entry.name}`;
      if (entry.isDirectory()) return depth > 0 ? logFiles(folder, name, depth - 1) : [];
      return entry.isFile() && LOG_NAME.test(name) ? [name] : [];
    })
    .slice(0, MOST_FILES);
}

/** `traces/a.jsonl`, `traces/b.jsonl` are `traces/*.jsonl`, where that says the same. */
function patternsOf(folder: string, names: readonly string[]): string[] {
  const groups = new Map<string, string[]>();
  for (const name of names) {
    const at = name.lastIndexOf("/");
    const ending = name.endsWith(".gz") ? `${extname(name.slice(0, -3))}.gz` : extname(name);
    const pattern = `${at < 0 ? "" : name.slice(0, at + 1)}*${ending}`;
    groups.set(pattern, [...(groups.get(pattern) ?? []), name]);
  }
  return [...groups].flatMap(([pattern, found]) => {
    const at = pattern.lastIndexOf("/");
    const ending = pattern.slice(at + 2);
    const all = readdirSync(join(folder, pattern.slice(0, Math.max(at, 0)))).filter(
      (name) => name.endsWith(ending) && !name.startsWith("."),
    );
    return at >= 0 && found.length > 1 && all.length === found.length ? [pattern] : found;
  });
}

/** The import format of a file by its first values, as `rlcli import` would take it. */
export function formatOf(path: string): string | undefined {
  const text = headOf(path);
  if (text === undefined) return undefined;
  for (const value of firstValues(text)) {
    const format = detectFormat(value);
    if (format !== undefined) return format.name;
  }
  return undefined;
}

function headOf(path: string): string | undefined {
  try {
    const fd = openSync(path, "r");
    try {
      const head = Buffer.alloc(HEAD_BYTES);
      const bytes = head.subarray(0, readSync(fd, head, 0, HEAD_BYTES, 0));
      if (!path.endsWith(".gz")) return bytes.toString("utf8");
      // Of a file cut at its head, what there is.
      return gunzipSync(bytes, { finishFlush: constants.Z_SYNC_FLUSH }).toString("utf8");
    } finally {
      closeSync(fd);
    }
  } catch {
    return undefined;
  }
}

/** Lines of JSON; else the file as one value, of a list its elements. */
function* firstValues(text: string): Generator<unknown> {
  let count = 0;
  for (const line of text.split("\n", LINES)) {
    const value = parsed(line);
    if (typeof value !== "object" || value === null || Array.isArray(value)) continue;
    count++;
    yield value;
  }
  if (count > 0) return;
  const whole = parsed(text);
  yield* Array.isArray(whole) ? whole.slice(0, LINES) : whole === undefined ? [] : [whole];
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
