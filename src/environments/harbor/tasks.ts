/** Folders of tasks: which there are, which are wanted, and one digest for all of them. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Diagnostic, diagnostic, fail, hasErrors } from "../../diagnostic.ts";
import { type Digest, digestBytes } from "../../digest.ts";
import { listNames } from "../../suggest.ts";
import { globSource } from "../sandbox/ignore.ts";
import { type HarborTask, loadTask } from "./task.ts";

/** Where a task is and what it is called in its dataset. */
export interface TaskPlace {
  readonly name: string;
  /** Absolute. */
  readonly folder: string;
}

export interface TaskFilter {
  /** Globs of names; all where empty. */
  readonly include: readonly string[];
  readonly exclude: readonly string[];
  /** The first so many of what is left. */
  readonly first?: number;
}

export interface TaskSet {
  readonly tasks: readonly (HarborTask & { readonly name: string })[];
  /** Of all tasks together, in any order. */
  readonly digest: Digest;
  readonly diagnostics: readonly Diagnostic[];
}

const DEEPEST = 3;

/** Tasks below a folder, down to three levels; the folder itself where it is one. Fails with RL7206 where there are none. */
export function findTasks(folder: string, shown = folder): readonly TaskPlace[] {
  if (!existsSync(folder) || !statSync(folder).isDirectory())
    fail("RL7206", `The folder of tasks ${shown} does not exist.`);
  const isTask = (path: string) => existsSync(join(path, "task.toml"));
  if (isTask(folder)) return [{ name: folder.split("/").at(-1) as string, folder }];
  const found: TaskPlace[] = [];
  const walk = (at: string, depth: number): void => {
    for (const entry of readdirSync(at, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))) {
      if (!entry.isDirectory() || entry.name.startsWith(".")) continue;
      const path = join(at, entry.name);
      if (isTask(path)) found.push({ name: entry.name, folder: path });
      else if (depth < DEEPEST) walk(path, depth + 1);
    }
  };
  walk(folder, 1);
  if (found.length === 0) fail("RL7206", `No folder below ${shown} holds a task.toml, so there are no tasks.`);
  return found;
}

/** Fails with RL7206 where names are not unique or nothing is left. */
export function filterTasks(
  places: readonly TaskPlace[],
  { include, exclude, first }: TaskFilter,
): readonly TaskPlace[] {
  const seen = new Set<string>();
  for (const { name } of places) {
    if (seen.has(name)) fail("RL7206", `Two tasks are called \`${name}\`; exclude one, or rename its folder.`);
    seen.add(name);
  }
  const matches = (globs: readonly string[], name: string) =>
    globs.some((glob) => new RegExp(`^${globSource(glob)}$`).test(name));
  const left = places.filter(({ name }) => (include.length === 0 || matches(include, name)) && !matches(exclude, name));
  if (left.length > 0) return left.slice(0, first);
  const some = listNames(
    places.map(({ name }) => name),
    5,
  );
  return fail("RL7206", `No task is left of ${places.length} after \`include\` and \`exclude\`. There are ${some}.`);
}

/**
 * Loads tasks. One that cannot be loaded is left out with a warning in its own words; there are no tasks at all only where none
 * could be loaded, and then the diagnostics are errors. `isStrict`: each that cannot be loaded is an error.
 */
export function loadTasks(places: readonly TaskPlace[], shown: (folder: string) => string, isStrict = false): TaskSet {
  const loaded = places.map((place) => ({ place, ...loadTask(place.folder, shown(place.folder)) }));
  const tasks = loaded.flatMap(({ place, task }) => (task ? [{ ...task, name: place.name }] : []));
  const soften = tasks.length > 0 && !isStrict;
  const diagnostics = loaded.flatMap(({ diagnostics }) =>
    soften && hasErrors(diagnostics) ? diagnostics.map((one) => leftOut(one)) : diagnostics,
  );
  return { tasks, digest: setDigest(tasks.map(({ digest }) => digest)), diagnostics: sameOnce(diagnostics) };
}

/** Harbor's digest of a dataset: the sorted task digests, with commas. */
function setDigest(digests: readonly Digest[]): Digest {
  return digestBytes(
    digests
      .map((digest) => digest.slice("sha256:".length))
      .sort()
      .join(","),
  );
}

const leftOut = (one: Diagnostic): Diagnostic =>
  one.severity === "error" ? { ...one, severity: "warning", detail: `${one.detail} The task is left out.` } : one;

/** The same remark about many tasks is made once, and counted. */
function sameOnce(all: readonly Diagnostic[]): readonly Diagnostic[] {
  const groups = new Map<string, Diagnostic[]>();
  for (const one of all) {
    const key = one.code === "RL7204" ? one.detail : `${groups.size}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  return [...groups.values()].map(([first, ...others]) => {
    const one = first as Diagnostic;
    if (others.length === 0) return one;
    return diagnostic(one.code, `${one.detail} So it is in ${others.length} other tasks.`, one);
  });
}
