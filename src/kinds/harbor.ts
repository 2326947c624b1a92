/** `type: harbor`: where tasks of the spec meet folders, registries, git, lock and cache. */
import { existsSync, statSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { type Diagnostic, type DiagnosticOptions, fail, RlcliError } from "../diagnostic.ts";
import type { Digest } from "../digest.ts";
import { durationMs } from "../duration.ts";
import type { AgentOrder, EnvironmentOrder, HarborOrder, SandboxLimits } from "../environment-order.ts";
import { cachedFolder, fetchTasks, resolveCommit } from "../environments/harbor/git.ts";
import { chooseDataset, DEFAULT_REGISTRY, parseDatasetName, readRegistry } from "../environments/harbor/registry.ts";
import { filterTasks, findTasks, loadTasks, type TaskPlace, type TaskSet } from "../environments/harbor/tasks.ts";
import type { ProjectContext } from "../kind.ts";
import { LOCK_FILE, type LockEntry } from "../lock.ts";
import type { SpecNode } from "../spec.ts";
import { numberAt, stringAt } from "./attributes.ts";

/** Tasks of a dataset as `rlcli.lock` keeps them. */
interface PinnedTask {
  readonly [key: string]: string;
  readonly name: string;
  readonly url: string;
  readonly commit: string;
  readonly path: string;
  readonly digest: Digest;
}

interface PinnedTasks extends LockEntry {
  readonly type: "harbor-dataset";
  readonly version: string;
  readonly tasks: readonly PinnedTask[];
}

/** All tasks of an environment, fetched and loaded. Fails with RL7206 to RL7208, RL2005 or RL2006. */
export async function harborTasks(node: SpecNode, project: ProjectContext, signal: AbortSignal): Promise<TaskSet> {
  const place = placeOf(node);
  try {
    const { places, pin } = await placesOf(node, project, signal);
    const wanted = filterTasks(places, {
      include: listAt(node, "include"),
      exclude: listAt(node, "exclude"),
      ...optional("first", numberAt(node, "first")),
    });
    const set = loadTasks(wanted, (folder) => shown(folder, project));
    pin?.(loadTasks(places, (folder) => shown(folder, project)));
    return { ...set, diagnostics: set.diagnostics.map((one) => ({ address: node.address, ...one })) };
  } catch (error) {
    if (!(error instanceof RlcliError)) throw error;
    throw new RlcliError(
      error.diagnostics.map((one): Diagnostic => ({ ...place, ...one }) as Diagnostic),
      { cause: error },
    );
  }
}

interface Places {
  readonly places: readonly TaskPlace[];
  /** Puts what was found into the lock, or holds it against what is there. */
  readonly pin?: (set: TaskSet) => void;
}

async function placesOf(node: SpecNode, project: ProjectContext, signal: AbortSignal): Promise<Places> {
  const folder = tasksFolder(node, project);
  if (folder !== undefined) return { places: findTasks(folder, stringAt(node, "tasks")) };
  const text = stringAt(node, "tasks") as string;
  const key = `harbor:${text}`;
  const locked = project.lock?.get(key);
  if (locked) return lockedPlaces(node, locked, project, signal);
  const registry = stringAt(node, "registry") ?? DEFAULT_REGISTRY;
  const datasets = await readRegistry(registry, project.folder, signal);
  const { version, tasks } = chooseDataset(datasets, parseDatasetName(text), registry);
  const commits = new Map<string, Promise<string>>();
  const commitOf = (url: string, ref: string | undefined) => {
    const known = commits.get(`${url} ${ref}`) ?? resolveCommit(url, ref, signal);
    commits.set(`${url} ${ref}`, known);
    return known;
  };
  const pinned: Omit<PinnedTask, "digest">[] = [];
  for (const { name, gitUrl, commit, path } of tasks)
    if (gitUrl !== undefined) pinned.push({ name, url: gitUrl, commit: await commitOf(gitUrl, commit), path } as never);
  const local = tasks.flatMap(({ name, gitUrl, path }) => (gitUrl === undefined ? [{ name, folder: path }] : []));
  if (pinned.length === 0) return { places: local };
  project.lock?.allowAdding(key, placeOf(node));
  await fetchTasks(pinned as unknown as readonly PinnedTask[], project.cacheFolder, signal);
  const places = [...local, ...pinned.map((task) => placeIn(project, task as unknown as PinnedTask))];
  return { places, pin: (set) => addToLock(node, key, version, pinned, set, project) };
}

function placeIn({ cacheFolder }: ProjectContext, task: PinnedTask): TaskPlace {
  return { name: task.name, folder: cachedFolder(cacheFolder, task) };
}

function addToLock(
  node: SpecNode,
  key: string,
  version: string,
  pinned: readonly Omit<PinnedTask, "digest">[],
  set: TaskSet,
  project: ProjectContext,
): void {
  const digests = new Map(set.tasks.map(({ name, digest }) => [name, digest]));
  const tasks = pinned.map((task) => ({
    ...task,
    digest: digests.get(task.name as string) ?? "sha256:",
  })) as PinnedTask[];
  project.lock?.add(key, { type: "harbor-dataset", version, tasks } satisfies PinnedTasks, placeOf(node));
}

async function lockedPlaces(
  node: SpecNode,
  entry: LockEntry,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<Places> {
  const { type, tasks } = entry as Partial<PinnedTasks>;
  if (type !== "harbor-dataset" || !Array.isArray(tasks))
    fail(
      "RL2005",
      `The entry of ${LOCK_FILE} for \`${stringAt(node, "tasks")}\` is not what rlcli writes. Run \`rlcli lock --upgrade ${node.address}\`.`,
    );
  await fetchTasks(tasks, project.cacheFolder, signal);
  const pin = (set: TaskSet): void => {
    const digests = new Map(set.tasks.map(({ name, digest }) => [name, digest]));
    for (const { name, digest, commit } of tasks as readonly PinnedTask[]) {
      const found = digests.get(name) ?? "sha256:";
      if (found !== digest)
        fail(
          "RL7208",
          `The task ${name} at ${commit.slice(0, 12)} is ${found.slice(0, 19)}… and ${LOCK_FILE} says ${digest.slice(0, 19)}….`,
        );
    }
  };
  return { places: (tasks as readonly PinnedTask[]).map((task) => placeIn(project, task)), pin };
}

/** The folder that `tasks` names, beside the spec or in the mirror; undefined for a name that is to be looked up. */
function tasksFolder(node: SpecNode, { folder }: ProjectContext): string | undefined {
  const text = stringAt(node, "tasks") as string;
  const own = resolve(folder, text);
  const isFolder = (path: string) => existsSync(path) && statSync(path).isDirectory();
  if (/^(\.{1,2})?\//.test(text) || isFolder(own)) return own;
  const mirror = stringAt(node, "mirror");
  if (mirror === undefined) return undefined;
  const { name, version } = parseDatasetName(text);
  const names =
    version === undefined ? [name] : [`${name}@${version}`, `${name}-${version}/${name}`, `${name}-${version}`, name];
  return names.map((one) => join(resolve(folder, mirror), one)).find(isFolder);
}

const shown = (folder: string, project: ProjectContext): string => {
  const path = relative(project.folder, folder);
  return path.startsWith("..") ? folder : path === "" ? "." : path;
};

function placeOf(node: SpecNode): DiagnosticOptions {
  const range = node.rangeOf("tasks");
  return { address: node.address, range, sourceLine: node.lineOf(range) };
}

/** What a worker needs to open the tasks. `tasks` are those that were planned. */
export function harborOrder(
  node: SpecNode,
  set: TaskSet,
  project: ProjectContext,
): Partial<EnvironmentOrder> & { harbor: HarborOrder } {
  const harbor: HarborOrder = {
    project: project.project,
    label: node.address,
    tasks: set.tasks.map(({ name, folder, digest }) => ({ name, folder, digest })),
    agent: agentOrder(node),
    sandbox: sandboxLimits(node),
  };
  return { harbor };
}

function agentOrder(node: SpecNode): AgentOrder {
  const number = (path: string) => numberAt(node, path) as number;
  const text = (path: string) => stringAt(node, path);
  const limit = text("agent_timeout");
  return {
    ...optional("system", text("system")),
    tool_format: text("tool_format") as AgentOrder["tool_format"],
    max_turns: number("max_turns"),
    command_timeout_ms: durationMs(text("command_timeout") as string),
    ...optional("agent_timeout_ms", limit === undefined ? undefined : durationMs(limit)),
    max_trajectory_tokens: number("max_trajectory_tokens"),
    output_bytes: number("output_bytes"),
    on_limit: text("on_limit") as AgentOrder["on_limit"],
    limit_reward: number("limit_reward"),
    malformed_retries: number("malformed_retries"),
    ...optional("reward_key", text("reward_key")),
  };
}

function sandboxLimits(node: SpecNode): SandboxLimits {
  const number = (path: string) => numberAt(node, `sandbox.${path}`);
  const text = (path: string) => stringAt(node, `sandbox.${path}`);
  const total = text("total_memory");
  return {
    concurrency: number("concurrency") ?? 8,
    memory_bytes: sizeBytes(text("memory") ?? "2GiB"),
    ...optional("total_memory_bytes", total === undefined ? undefined : sizeBytes(total)),
    pids: number("pids") ?? 1024,
    network: (text("network") ?? "task") as SandboxLimits["network"],
    security: (text("security") ?? "compat") as SandboxLimits["security"],
    lifetime_ms: durationMs(text("lifetime") ?? "2h"),
    ...optional("host", listAt(node, "sandbox.host")),
    keep_failed: node.attributes.get("sandbox.keep_failed")?.value === true,
  };
}

/** Bytes of a size that the schema has checked. */
function sizeBytes(text: string): number {
  const [, count, unit] = /^(\d+)(MiB|GiB)$/.exec(text) ?? [];
  return Number(count) * (unit === "GiB" ? 2 ** 30 : 2 ** 20);
}

function optional<K extends string, T>(key: K, value: T | undefined): { readonly [P in K]?: T } {
  return (value === undefined ? {} : { [key]: value }) as { readonly [P in K]?: T };
}

const listAt = (node: SpecNode, path: string): readonly string[] =>
  (node.attributes.get(path)?.value as readonly string[] | undefined) ?? [];
