/** Datasets by `name@version`: registry files in Harbor's form, by path or address. */
import { readFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { withDeadline } from "../../abort.ts";
import { isRecord } from "../../datasets/row.ts";
import { fail, messageOf } from "../../diagnostic.ts";
import { didYouMean, listNames } from "../../suggest.ts";
import { credentialIn } from "../../url.ts";

/** Where Harbor keeps the list of public datasets. */
export const DEFAULT_REGISTRY = "https://raw.githubusercontent.com/laude-institute/harbor/main/registry.json";

export interface RegistryTask {
  readonly name: string;
  /** Absent for a local one. */
  readonly gitUrl?: string;
  /** A commit, or a name that stands for one. */
  readonly commit?: string;
  /** In the repository; absolute for a local one. */
  readonly path: string;
}

export interface RegistryDataset {
  readonly name: string;
  readonly version: string;
  readonly tasks: readonly RegistryTask[];
}

const DOWNLOAD_TIMEOUT_MS = 60_000;

/** `source` is a path from `folder` on, or an address. Fails with RL7207. */
export async function readRegistry(
  source: string,
  folder: string,
  signal: AbortSignal,
): Promise<readonly RegistryDataset[]> {
  const isRemote = /^https?:\/\//.test(source);
  const path = isRemote ? source : resolve(folder, source);
  let value: unknown;
  try {
    value = JSON.parse(isRemote ? await download(path, signal) : readFileSync(path, "utf8"));
  } catch (error) {
    signal.throwIfAborted();
    fail("RL7207", `The registry ${source} cannot be read: ${reasonOf(error)}.`, { cause: error });
  }
  if (!Array.isArray(value)) fail("RL7207", `The registry ${source} is no list of datasets.`);
  return value.map((entry, at) => datasetOf(entry, isRemote ? undefined : dirname(path), `${source}: entry ${at}`));
}

async function download(url: string, signal: AbortSignal): Promise<string> {
  const { fetch } = await import("undici");
  return withDeadline(DOWNLOAD_TIMEOUT_MS, signal, async (limit) => {
    const response = await fetch(url, { signal: limit });
    if (!response.ok) throw new Error(`the server answers ${response.status}`);
    return response.text();
  });
}

/** `fetch failed` has its reason in its cause. */
const reasonOf = (error: unknown): string =>
  messageOf(error instanceof Error && error.cause ? error.cause : error).replace(/\.$/, "");

function datasetOf(entry: unknown, folder: string | undefined, where: string): RegistryDataset {
  const { name, version, tasks } = isRecord(entry) ? entry : {};
  if (typeof name !== "string" || typeof version !== "string" || !Array.isArray(tasks))
    fail("RL7207", `${where} is no dataset: it needs a name, a version and tasks.`);
  return { name, version, tasks: tasks.map((task) => taskOf(task, folder, `${where}, \`${name}\``)) };
}

function taskOf(entry: unknown, folder: string | undefined, where: string): RegistryTask {
  const { name, git_url, git_commit_id, path } = isRecord(entry) ? entry : {};
  if (typeof path !== "string") fail("RL7207", `${where}: a task has no path.`);
  const own = typeof name === "string" ? name : (path.split("/").at(-1) as string);
  // It is asked with git, and goes into the lock.
  const secret = typeof git_url === "string" ? credentialIn(git_url) : undefined;
  if (secret !== undefined)
    fail("RL7207", `${where}: the git_url of ${own} has ${secret}. Leave it out; git's own credentials are used.`);
  if (typeof git_url === "string")
    return {
      name: own,
      gitUrl: git_url,
      path,
      ...(typeof git_commit_id === "string" ? { commit: git_commit_id } : {}),
    };
  // Harbor takes it from where it happens to be started; beside the file is what is meant.
  if (folder === undefined) fail("RL7207", `${where}: the task ${own} is a local folder, and the registry is not.`);
  return { name: own, path: resolve(folder, path) };
}

export interface DatasetName {
  readonly name: string;
  readonly version?: string;
}

/** `name` or `name@version`. Fails with RL7206. */
export function parseDatasetName(text: string): DatasetName {
  const at = text.indexOf("@");
  const [name, version] = at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
  if (name.includes("/"))
    fail(
      "RL7206",
      `\`${text}\` is no folder here, and names with a slash are packages of Harbor's own service, which is not supported. Download it with \`harbor download\` and give the folder.`,
    );
  if (name === "" || version === "")
    fail("RL7206", `\`${text}\` is no name of a dataset: it has the form name@version.`);
  return version === undefined ? { name } : { name, version };
}

/** Without a version: `head`, else the highest. Fails with RL7206. */
export function chooseDataset(
  all: readonly RegistryDataset[],
  { name, version }: DatasetName,
  source: string,
): RegistryDataset {
  const named = all.filter((dataset) => dataset.name === name);
  if (named.length === 0) {
    const names = [...new Set(all.map((dataset) => dataset.name))];
    fail(
      "RL7206",
      `The registry ${source} has no dataset \`${name}\`.${didYouMean(name, names)} It has ${listNames(names)}.`,
    );
  }
  if (version !== undefined) {
    const found = named.find((dataset) => dataset.version === version);
    if (found) return found;
    const versions = listNames(named.map((dataset) => dataset.version));
    return fail("RL7206", `The registry ${source} has no version \`${version}\` of ${name}. It has ${versions}.`);
  }
  const head = named.find((dataset) => dataset.version === "head");
  return head ?? ([...named].sort((a, b) => compareVersions(a.version, b.version)).at(-1) as RegistryDataset);
}

/** Numbers part by part, as PEP 440 orders releases; what is no release comes before all that are, in order of text. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => /^v?(\d+(?:\.\d+)*)((?:a|b|rc)\d+)?$/.exec(text));
  if (!left || !right) return left ? 1 : right ? -1 : a < b ? -1 : Number(a > b);
  const parts = (found: RegExpExecArray) => (found[1] as string).split(".").map(Number);
  const [mine, theirs] = [parts(left), parts(right)];
  for (let at = 0; at < Math.max(mine.length, theirs.length); at += 1) {
    const difference = (mine[at] ?? 0) - (theirs[at] ?? 0);
    if (difference !== 0) return difference;
  }
  // A pre-release comes before its release.
  const [pre, other] = [left[2] ?? "~", right[2] ?? "~"];
  return pre < other ? -1 : Number(pre > other);
}
