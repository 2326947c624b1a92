/** Opens what a command works on: the spec, the state beside it, and the plan that follows from both. */
import { homedir } from "node:os";
import { dirname, join, resolve } from "node:path";
import type { Address } from "../address.ts";
import { loadSpec } from "../config/load.ts";
import { type Diagnostic, hasErrors } from "../diagnostic.ts";
import { type Refreshed, refresh } from "../engine/refresh.ts";
import type { Kinds, ProjectContext } from "../kind.ts";
import { kinds } from "../kinds/registry.ts";
import { LOCK_FILE, Lock, type LockMode } from "../lock.ts";
import { type PlanResult, planChanges } from "../plan/plan.ts";
import type { Spec, SpecInput } from "../spec.ts";
import { LocalStateStore } from "../state/backends/local.ts";
import type { StateStore } from "../state/store.ts";
import type { StateRecord } from "../state-record.ts";
import { VERSION } from "./context.ts";

export interface OpenOptions {
  readonly files: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly variableFiles: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What may happen to `rlcli.lock`; by default missing names are added, unless CI is set. */
  readonly lockMode?: LockMode;
}

export interface OpenProject {
  readonly spec: Spec | undefined;
  readonly context: ProjectContext;
  readonly store: StateStore;
  readonly kinds: Kinds;
  readonly diagnostics: readonly Diagnostic[];
}

export async function openProject(options: OpenOptions): Promise<OpenProject> {
  const folder = folderOf(options.files, options.cwd);
  const cache = { folder: join(folder, ".rlcli", "cache"), version: VERSION };
  const { spec, diagnostics } = await loadSpec({ ...options, cache });
  return { ...openFolder({ ...options, cwd: folder }, spec), spec, diagnostics };
}

/** The folder of a project, where `.rlcli` is or will be: that of the first spec file, whether it loads or not. */
export const folderOf = ([first]: readonly string[], cwd: string): string =>
  first === undefined ? cwd : dirname(resolve(cwd, first));

/** The state of a folder, also where its spec is gone or does not load. */
export function openFolder(
  options: Pick<OpenOptions, "cwd" | "env" | "lockMode">,
  spec?: Spec,
): Omit<OpenProject, "diagnostics" | "spec"> {
  const folder = spec?.folder ?? options.cwd;
  const dataFolder = join(folder, ".rlcli");
  const context: ProjectContext = {
    project: spec?.project ?? "",
    folder,
    dataFolder,
    cacheFolder: cacheFolder(options.env),
    env: options.env,
    ...(spec ? { lock: new Lock(join(folder, LOCK_FILE), lockModeOf(options, folder)) } : {}),
  };
  return { context, store: new LocalStateStore(join(dataFolder, "state")), kinds };
}

/** Where a program works on what was reviewed, nothing is to be resolved anew; a verb without a spec has nothing to review. */
function lockModeOf({ env, lockMode }: Pick<OpenOptions, "env" | "lockMode">, folder: string): LockMode {
  if (lockMode !== undefined) return lockMode;
  const isCi = !/^(|0|false)$/i.test(env.CI ?? "");
  return isCi && !isAdhocFolder(folder) ? "locked" : "add";
}

/** Where the specs of verbs lie (`adhoc.ts`). */
const isAdhocFolder = (folder: string): boolean => /[\\/]\.rlcli[\\/]adhoc[\\/][^\\/]+$/.test(folder);

/** Built-in models and the like: shared by projects, safe to delete. */
export function cacheFolder(env: Readonly<Record<string, string | undefined>>): string {
  return env.RLCLI_CACHE ?? join(env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "rlcli");
}

export interface PlanRequest {
  readonly targets: readonly Address[];
  readonly replace: readonly Address[];
  readonly destroy: boolean;
  readonly signal: AbortSignal;
}

export interface PlannedProject {
  readonly plan: PlanResult;
  readonly refreshed: Refreshed;
  readonly records: ReadonlyMap<Address, StateRecord>;
  readonly lineage: string | undefined;
  /** Everything that was read to make the plan. */
  readonly inputs: readonly SpecInput[];
  readonly diagnostics: readonly Diagnostic[];
  readonly isValid: boolean;
}

/** Refresh and plan; takes no lock and changes nothing. */
export async function planProject(open: OpenProject, request: PlanRequest): Promise<PlannedProject> {
  const [{ records, diagnostics: damage }, lineage] = await Promise.all([open.store.list(), open.store.lineage()]);
  const spec = request.destroy ? undefined : open.spec;
  const input = { spec, kinds: open.kinds, records, project: open.context, signal: request.signal };
  const refreshed = await refresh(input);
  const plan = planChanges({
    ...input,
    facts: refreshed.facts,
    observations: refreshed.observations,
    targets: request.targets,
    replace: request.replace,
  });
  // What is to be replaced anyway may be damaged: that is how it is mended.
  const found = refreshed.diagnostics.map(
    (d): Diagnostic => (d.address && request.replace.includes(d.address) ? { ...d, severity: "warning" } : d),
  );
  const diagnostics = [...open.diagnostics, ...damage, ...found, ...plan.diagnostics];
  return {
    plan,
    refreshed,
    records,
    lineage,
    inputs: [...(spec?.inputs ?? []), ...refreshed.inputs],
    diagnostics,
    isValid: !hasErrors(diagnostics),
  };
}
