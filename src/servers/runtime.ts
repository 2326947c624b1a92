/**
 * Supervision of an embedded server by its folder: who runs, how it ended, starting, stopping, and who uses it.
 *
 *   runtime.json   ServerRuntime of the running server, mode 0600: the only place where its token is
 *   stopped.json   marker of a clean end
 *   log.txt        the server's words
 *   users/         one file a user; a user whose process is gone does not count
 *   checkpoints/   see checkpoints.ts
 */
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Address } from "../address.ts";
import { fail, messageOf } from "../diagnostic.ts";
import { writeFileWhole } from "../files.ts";
import { isAlive, ownIdentity, type ProcessIdentity, signalProcess } from "../process.ts";
import { ensureBuiltinModel, isBuiltinModel } from "./builtin.ts";
import { launch, logPath, logTail, type ServerOrder, startFailure } from "./launch.ts";
import { lockStart } from "./startlock.ts";

export const RUNTIME_VERSION = 1;

export interface ServerRuntime {
  readonly formatVersion: typeof RUNTIME_VERSION;
  readonly process: ProcessIdentity;
  readonly url: string;
  /** What it listens on. */
  readonly host: string;
  /** `tml-…`: what SDKs of this protocol demand of a key. */
  readonly token: string;
  /** As the spec names it. */
  readonly model: string;
  readonly modelFolder: string;
  readonly startedAt: string;
  /** Random, one per start; healthz returns it too, so that a client can tell a restarted server. */
  readonly serverRun: string;
}

export type RuntimeState =
  | { readonly state: "running"; readonly runtime: ServerRuntime }
  | { readonly state: "stopped"; readonly at?: string }
  | { readonly state: "died"; readonly pid: number; readonly logTail: string }
  | { readonly state: "never" };

export interface StoppedMarker {
  readonly formatVersion: typeof RUNTIME_VERSION;
  readonly at: string;
  readonly serverRun: string;
  readonly reason: "idle" | "signal";
}

export interface ServerUser {
  readonly address: Address;
  readonly process: ProcessIdentity;
}

export interface EnsureOptions {
  readonly folder: string;
  /** `builtin:tiny` or a Hugging Face folder. */
  readonly model: string;
  /** Where a relative model folder starts; the working directory by default. */
  readonly baseFolder?: string;
  /** Where built-in models are written. */
  readonly cacheFolder: string;
  /** A free one by default. */
  readonly port?: number;
  readonly host?: string;
  readonly idleTimeoutSeconds?: number;
  readonly slots?: number;
  readonly signal?: AbortSignal;
  readonly onPhase?: (text: string) => void;
}

const DEFAULTS = { host: "127.0.0.1", idleTimeoutSeconds: 300, slots: 8 } as const;
const MOST_LOG_BYTES = 5_000_000;
const HEALTH_TIMEOUT_MS = 10_000;
/** How long a server that does not answer may take to end, before that is called a fault. */
const LEAVING_MS = 5000;
const POLL_MS = 50;

export function runtimePath(folder: string): string {
  return join(folder, "runtime.json");
}

export function stoppedPath(folder: string): string {
  return join(folder, "stopped.json");
}

/** How things stand, from files and the process table alone. */
export function readRuntime(folder: string): RuntimeState {
  const runtime = readJson<ServerRuntime>(runtimePath(folder));
  const stopped = readJson<StoppedMarker>(stoppedPath(folder));
  if (runtime === undefined) return stopped ? { state: "stopped", at: stopped.at } : { state: "never" };
  if (isAlive(runtime.process)) return { state: "running", runtime };
  // Between the marker and the removal of runtime.json the process may have been killed: the marker names its run.
  if (stopped?.serverRun === runtime.serverRun) return { state: "stopped", at: stopped.at };
  return { state: "died", pid: runtime.process.pid, logTail: logTail(folder) };
}

/** The running server of a folder, started if there is none. Callers may race: all get the same one. */
export async function ensureEmbedded(options: EnsureOptions): Promise<ServerRuntime> {
  const { folder, signal } = options;
  const modelFolder = resolveModel(options);
  prepareFolder(folder);
  for (let isLastTry = false; ; isLastTry = true) {
    const runtime = await findOrStart(options, modelFolder);
    try {
      await checkHealth(runtime, folder, signal);
      return runtime;
    } catch (error) {
      // A server on its way out still has its process but answers no more: once that has gone, another is started.
      if (isLastTry || !(await hasEnded(runtime.process, LEAVING_MS))) throw error;
    }
  }
}

async function findOrStart(options: EnsureOptions, modelFolder: string): Promise<ServerRuntime> {
  const { folder, signal } = options;
  const running = () => {
    const found = readRuntime(folder);
    return found.state === "running" ? found.runtime : undefined;
  };
  const release = await lockStart(folder, () => running() !== undefined, signal).catch(refuseFolder(folder));
  try {
    const found = running();
    if (found) checkSettings(found, options, modelFolder);
    return found ?? (await start(options, modelFolder));
  } finally {
    release?.();
  }
}

function resolveModel({ model, baseFolder, cacheFolder }: EnsureOptions): string {
  if (isBuiltinModel(model)) return ensureBuiltinModel(model, cacheFolder);
  const folder = isAbsolute(model) ? model : resolve(baseFolder ?? ".", model);
  if (!existsSync(join(folder, "config.json")))
    fail("RL5002", `${folder} is not a Hugging Face model folder: it has no config.json.`);
  return folder;
}

function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const log = logPath(folder);
    const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
    if (size > MOST_LOG_BYTES) renameSync(log, join(folder, "log.old.txt"));
  } catch (error) {
    refuseFolder(folder)(error);
  }
}

/** Errors of the file system are the folder's fault; all others go on as they are. */
export function refuseFolder(folder: string): (error: unknown) => never {
  return (error) => {
    if (typeof (error as NodeJS.ErrnoException)?.syscall !== "string") throw error;
    fail("RL5007", `The server folder ${folder} cannot be used: ${messageOf(error)}.`, { cause: error });
  };
}

function checkSettings(found: ServerRuntime, options: EnsureOptions, modelFolder: string): void {
  const port = Number(new URL(found.url).port);
  const differs =
    found.modelFolder !== modelFolder
      ? `with the model ${found.model} (${found.modelFolder})`
      : options.port !== undefined && options.port !== 0 && options.port !== port
        ? `on port ${port}`
        : options.host !== undefined && options.host !== found.host
          ? `on ${found.host}`
          : undefined;
  if (differs)
    fail(
      "RL5008",
      `The server in ${options.folder} already runs ${differs}. Stop it first; it then starts with the new settings.`,
    );
}

async function start(options: EnsureOptions, modelFolder: string): Promise<ServerRuntime> {
  const { folder, model } = options;
  const order: ServerOrder = {
    folder: resolve(folder),
    model,
    modelFolder,
    host: options.host ?? DEFAULTS.host,
    port: options.port ?? 0,
    idleTimeoutSeconds: options.idleTimeoutSeconds ?? DEFAULTS.idleTimeoutSeconds,
    slots: options.slots ?? DEFAULTS.slots,
  };
  await launch(order, options).catch(refuseFolder(folder));
  const found = readRuntime(folder);
  if (found.state !== "running") throw startFailure(folder, "it ended right after it had started");
  return found.runtime;
}

async function checkHealth(runtime: ServerRuntime, folder: string, signal: AbortSignal | undefined): Promise<void> {
  const timeout = AbortSignal.timeout(HEALTH_TIMEOUT_MS);
  try {
    const response = await fetch(`${runtime.url}/api/v1/healthz`, {
      headers: { "X-API-Key": runtime.token },
      signal: signal ? AbortSignal.any([signal, timeout]) : timeout,
    });
    const body = (await response.json()) as { serverRun?: string };
    if (body.serverRun !== runtime.serverRun)
      throw new Error(`another program answers there (status ${response.status})`);
  } catch (error) {
    signal?.throwIfAborted();
    fail(
      "RL5003",
      `The embedded server's process ${runtime.process.pid} lives, but ${runtime.url} does not answer as it should: ${messageOf(error)}. The end of ${logPath(folder)}:\n${logTail(folder)}`,
      { cause: error },
    );
  }
}

/** Registers a user of the server; give the result to `unregister`. */
export function registerUser(folder: string, user: ServerUser): string {
  const path = join(folder, "users", `${user.process.pid}-${randomBytes(4).toString("hex")}.json`);
  writeFileWhole(path, JSON.stringify(user));
  return path;
}

export function unregister(registration: string): void {
  rmSync(registration, { force: true });
}

/** Live users. Files of dead ones are removed. */
export function listUsers(folder: string): readonly ServerUser[] {
  const users = join(folder, "users");
  if (!existsSync(users)) return [];
  return readdirSync(users)
    .filter((name) => name.endsWith(".json"))
    .flatMap((name) => {
      const user = readJson<ServerUser>(join(users, name));
      if (user && isAlive(user.process)) return [user];
      rmSync(join(users, name), { force: true });
      return [];
    });
}

/**
 * Stops a running server: it finishes what it computes at the moment and leaves its marker. Refuses while other live
 * processes use it (RL5005) or if it takes longer than `timeoutMs` (RL5006), unless forced. Returns how things stood before.
 */
export async function stopServer(
  folder: string,
  { force = false, timeoutMs }: { readonly force?: boolean; readonly timeoutMs: number },
): Promise<RuntimeState> {
  const before = readRuntime(folder);
  if (before.state !== "running") return before;
  const { runtime } = before;
  const own = ownIdentity();
  const others = listUsers(folder).filter(({ process: user }) => user.pid !== own.pid);
  if (others.length > 0 && !force)
    fail(
      "RL5005",
      `The server in ${folder} is used by ${others.map(({ address, process: user }) => `${address} (pid ${user.pid})`).join(", ")}. Wait for them, stop them, or force it.`,
    );
  signalProcess(runtime.process, "SIGTERM");
  if (await hasEnded(runtime.process, timeoutMs)) return before;
  if (!force)
    fail(
      "RL5006",
      `The server's process ${runtime.process.pid} still runs ${timeoutMs / 1000} s after it was told to stop.`,
    );
  signalProcess(runtime.process, "SIGKILL");
  await hasEnded(runtime.process, HEALTH_TIMEOUT_MS);
  writeStopped(folder, runtime.serverRun, "signal");
  return before;
}

async function hasEnded(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
  const until = Date.now() + timeoutMs;
  while (isAlive(identity)) {
    if (Date.now() >= until) return false;
    await delay(POLL_MS);
  }
  return true;
}

/** Writes the marker of a clean end, then takes the token away. */
export function writeStopped(folder: string, serverRun: string, reason: StoppedMarker["reason"]): void {
  const marker: StoppedMarker = { formatVersion: RUNTIME_VERSION, at: new Date().toISOString(), serverRun, reason };
  writeFileWhole(stoppedPath(folder), `${JSON.stringify(marker)}\n`);
  // After a forced stop, another may have been started already.
  if (readJson<ServerRuntime>(runtimePath(folder))?.serverRun === serverRun) rmSync(runtimePath(folder));
}

/** Makes a server known. From here on it counts as running. */
export function writeRuntime(folder: string, runtime: ServerRuntime): void {
  writeFileWhole(runtimePath(folder), `${JSON.stringify(runtime, null, 2)}\n`, { mode: 0o600 });
  rmSync(stoppedPath(folder), { force: true });
}

function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as T;
  } catch {
    return undefined;
  }
}
