/**
 * Supervision of a server by its folder: who runs, how it ended, stopping it, and who uses it. `ensure.ts` starts one.
 *
 *   runtime.json   ServerRuntime of the running server, mode 0600: the only place where its token is
 *   stopped.json   marker of a clean end
 *   crash.json     the last crash of a SkyRL server
 *   log.txt        the server's words
 *   users/         one file a user; a user whose process is gone does not count
 *   checkpoints/   see checkpoints.ts
 */
import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Address } from "../address.ts";
import { fail, messageOf } from "../diagnostic.ts";
import { writeFileWhole } from "../files.ts";
import { isAlive, ownIdentity, type ProcessIdentity, signalProcess } from "../process.ts";
import { logTail } from "./launch.ts";

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
  /** Of servers that are not embedded: what runs the model, on how many GPUs in all, and the digest of all its settings. */
  readonly backend?: string;
  /** Where others reach it, if not at `url`. */
  readonly publicUrl?: string;
  readonly gpus?: number;
  readonly digest?: string;
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

/** A crash of a server that is started again. */
export interface ServerCrash {
  readonly serverRun: string;
  readonly at: string;
  readonly code: number;
  /** Of its log: those that most likely say why. */
  readonly lines: readonly string[];
}

const KILLED_MS = 10_000;
const POLL_MS = 50;

function runtimePath(folder: string): string {
  return join(folder, "runtime.json");
}

/** The last crash of a SkyRL server. */
export function crashPath(folder: string): string {
  return join(folder, "crash.json");
}

export function readCrash(folder: string): ServerCrash | undefined {
  return readJson<ServerCrash>(crashPath(folder));
}

function stoppedPath(folder: string): string {
  return join(folder, "stopped.json");
}

/** How things stand, from files and the process table alone. */
export function readRuntime(folder: string): RuntimeState {
  const runtime = readJson<ServerRuntime>(runtimePath(folder));
  if (runtime !== undefined && isAlive(runtime.process)) return { state: "running", runtime };
  // Read last: a server writes it before it ends, and takes it away once runtime.json tells of the next one.
  const stopped = readJson<StoppedMarker>(stoppedPath(folder));
  if (readJson<ServerRuntime>(runtimePath(folder))?.serverRun !== runtime?.serverRun) return readRuntime(folder);
  if (runtime === undefined) return stopped ? { state: "stopped", at: stopped.at } : { state: "never" };
  // Between the marker and the removal of runtime.json the process may have been killed: the marker names its run.
  if (stopped?.serverRun === runtime.serverRun) return { state: "stopped", at: stopped.at };
  const crash = readCrash(folder);
  const isItsOwn = crash?.serverRun === runtime.serverRun && crash.lines.length > 0;
  return { state: "died", pid: runtime.process.pid, logTail: isItsOwn ? crash.lines.join("\n") : logTail(folder) };
}

/** Errors of the file system are the folder's fault; all others go on as they are. */
export function refuseFolder(folder: string): (error: unknown) => never {
  return (error) => {
    if (typeof (error as NodeJS.ErrnoException)?.syscall !== "string") throw error;
    fail("RL5007", `The server folder ${folder} cannot be used: ${messageOf(error)}.`, { cause: error });
  };
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
  await hasEnded(runtime.process, KILLED_MS);
  writeStopped(folder, runtime.serverRun, "signal");
  return before;
}

/** Waits until a process has ended; tells whether it has. */
export async function hasEnded(identity: ProcessIdentity, timeoutMs: number): Promise<boolean> {
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
