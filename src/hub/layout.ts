/**
 * Which files of a dataset's repository are which split of which configuration. A repository says so in its README (`configs:`
 * in the front matter), else by the names of its files; the hub's own conversion to Parquet has a layout of its own. What
 * follows from none of these is not guessed.
 */
import { parse as parseYaml } from "yaml";
import { globPattern } from "../glob.ts";

export interface RepoFile {
  readonly path: string;
}

/** Files by split by configuration, in the order in which they are read. */
export type Layout<F extends RepoFile> = ReadonlyMap<string, ReadonlyMap<string, readonly F[]>>;

/** What can be read, the likeliest first: where a split is there in several forms, one of them is taken. */
const FORMS = [
  /\.parquet$/i,
  /\.jsonl(\.gz|\.zst)?$/i,
  /\.ndjson(\.gz|\.zst)?$/i,
  /\.json(\.gz|\.zst)?$/i,
  /\.[ct]sv(\.gz|\.zst)?$/i,
];

const byPath = (a: RepoFile, b: RepoFile): number => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0);

class Splits<F extends RepoFile> {
  readonly #found = new Map<string, Map<string, F[]>>();

  add(config: string, split: string, files: readonly F[]): void {
    if (files.length === 0) return;
    const splits = this.#found.get(config) ?? new Map<string, F[]>();
    this.#found.set(config, splits);
    const known = splits.get(split) ?? [];
    splits.set(split, [...known, ...files.filter((file) => !known.includes(file))]);
  }

  layout(): Layout<F> {
    const configs = [...this.#found].map(([config, splits]) => {
      const kept = [...splits].map(([split, files]) => [split, ofOneForm(files)] as const);
      return [config, new Map(kept.filter(([, files]) => files.length > 0))] as const;
    });
    return new Map(configs.filter(([, splits]) => splits.size > 0));
  }
}

function ofOneForm<F extends RepoFile>(files: readonly F[]): readonly F[] {
  for (const form of FORMS) {
    const found = files.filter(({ path }) => form.test(path));
    if (found.length > 0) return found.sort(byPath);
  }
  return [];
}

/** The hub's conversion: `CONFIG/SPLIT/0000.parquet`. Splits of which it has only a part are named `partial-…` there, and stay so. */
export function convertedLayout<F extends RepoFile>(files: readonly F[]): Layout<F> {
  const splits = new Splits<F>();
  for (const file of files) {
    const [config, split, name, ...more] = file.path.split("/");
    if (config && split && name && more.length === 0) splits.add(config, split, [file]);
  }
  return splits.layout();
}

/** A repository's own files. `readme`: its text, where there is one. */
export function ownLayout<F extends RepoFile>(files: readonly F[], readme: string | undefined): Layout<F> {
  const declared = declaredConfigs(readme);
  const splits = new Splits<F>();
  if (declared.length === 0) for (const [split, found] of namedSplits(files)) splits.add("default", split, found);
  for (const { config_name, data_files, data_dir } of declared) {
    const config = String(config_name ?? "default");
    const below = inFolder(files, typeof data_dir === "string" ? data_dir : "");
    const patterns = splitPatterns(data_files);
    for (const [split, pattern] of patterns) {
      const matches = globPattern(pattern.replace(/^\.?\//, ""));
      splits.add(
        config,
        split,
        below.filter(({ within }) => matches.test(within)).map(({ file }) => file),
      );
    }
    if (patterns.length > 0) continue;
    for (const [split, found] of namedSplits(below.map(({ file, within }) => ({ path: within, file }))))
      splits.add(
        config,
        split,
        found.map(({ file }) => file),
      );
  }
  return splits.layout();
}

function inFolder<F extends RepoFile>(files: readonly F[], folder: string): { file: F; within: string }[] {
  const prefix = folder.replace(/^\.?\/|\/+$/g, "");
  const start = prefix === "" ? "" : `${prefix}/`;
  return files
    .filter(({ path }) => path.startsWith(start))
    .map((file) => ({ file, within: file.path.slice(start.length) }));
}

interface DeclaredConfig {
  readonly config_name?: unknown;
  readonly data_files?: unknown;
  readonly data_dir?: unknown;
}

function declaredConfigs(readme: string | undefined): readonly DeclaredConfig[] {
  const { configs } = frontMatter(readme);
  return Array.isArray(configs) ? configs.filter((config) => typeof config === "object" && config !== null) : [];
}

/** Columns of a configuration as the README's `dataset_info` has them; undefined where it says nothing of them. */
export function declaredColumns(readme: string | undefined, config: string): readonly string[] | undefined {
  const { dataset_info } = frontMatter(readme);
  const infos = (Array.isArray(dataset_info) ? dataset_info : [dataset_info]) as readonly unknown[];
  for (const info of infos) {
    const { config_name = "default", features } = (info ?? {}) as { config_name?: unknown; features?: unknown };
    if (String(config_name) !== config || !Array.isArray(features)) continue;
    const names = features.map((feature) => (feature as { name?: unknown } | null)?.name);
    if (names.length > 0 && names.every((name) => typeof name === "string")) return names as string[];
  }
  return undefined;
}

function frontMatter(readme: string | undefined): { readonly configs?: unknown; readonly dataset_info?: unknown } {
  const [, yaml] = /^---\r?\n([\s\S]*?)\r?\n---/.exec(readme ?? "") ?? [];
  if (yaml === undefined) return {};
  try {
    const value: unknown = parseYaml(yaml, { logLevel: "silent" });
    return typeof value === "object" && value !== null ? value : {};
  } catch {
    // A README is for people first: without a front matter that can be read, names decide.
    return {};
  }
}

/** `data_files` is a pattern, a list of them, or a list of splits with patterns. Pairs of split and pattern. */
function splitPatterns(dataFiles: unknown): readonly (readonly [string, string])[] {
  const entries = Array.isArray(dataFiles) ? dataFiles : dataFiles === undefined ? [] : [dataFiles];
  return entries.flatMap((entry): (readonly [string, string])[] => {
    if (typeof entry === "string") return [["train", entry]];
    const { split, path } = (entry ?? {}) as { split?: unknown; path?: unknown };
    const paths = Array.isArray(path) ? path : [path];
    return paths.filter((p) => typeof p === "string").map((p) => [String(split ?? "train"), p] as const);
  });
}

/** `train-00000-of-00002.parquet`, with any name for a split. */
const SHARD = /(?:^|\/)([\w.]+)-\d{5}-of-\d{5}(?:-[0-9a-f]+)?\.[^/]*$/;
const word = (names: string) => new RegExp(`(?:^|[^a-z0-9])(?:${names})(?:[^a-z0-9]|$)`, "i");
/** Words in a path that stand for a split, as the hub takes them. */
const WORDS: readonly (readonly [string, RegExp])[] = [
  ["train", word("train|training")],
  ["test", word("test|testing|eval|evaluation")],
  ["validation", word("validation|valid|dev|val")],
];

function namedSplits<F extends RepoFile>(files: readonly F[]): ReadonlyMap<string, F[]> {
  const found = new Map<string, F[]>();
  const readable = files.filter(({ path }) => FORMS.some((form) => form.test(path)) && !/(^|\/)\./.test(path));
  for (const file of readable) {
    const split = SHARD.exec(file.path)?.[1] ?? WORDS.find(([, pattern]) => pattern.test(file.path))?.[0];
    if (split !== undefined) found.set(split, [...(found.get(split) ?? []), file]);
  }
  return found;
}
