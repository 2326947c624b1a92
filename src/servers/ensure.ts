/** One running server per folder: whoever needs it gets it, and it is started where there is none. */
import { mkdirSync, renameSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { withDeadline } from "../abort.ts";
import { fail, messageOf } from "../diagnostic.ts";
import { isAlive } from "../process.ts";
import { takeTurnUnless } from "../turn.ts";
import { type Launch, launch, logPath, logTail, startFailure } from "./launch.ts";
import { hasEnded, readRuntime, refuseFolder, type ServerRuntime } from "./runtime.ts";

/** A kind of server, as far as its supervision has to know it. */
export interface ServerProgram {
  /** In messages: `embedded server`. */
  readonly what: string;
  readonly folder: string;
  /** How a running server is not the one that is asked for: "with the model X"; undefined where it is. */
  differs(found: ServerRuntime): string | undefined;
  /** What it takes to start one; called by one process at a time. */
  prepare(): Promise<Launch>;
  /** How long a server whose process lives may take to answer: SkyRL may be starting again after a crash. */
  readonly healthTimeoutMs: number;
}

export interface EnsureControl {
  readonly signal?: AbortSignal;
  readonly onPhase?: (text: string) => void;
}

const MOST_LOG_BYTES = 5_000_000;
/** How long a server that does not answer may take to end, before that is called a fault. */
const LEAVING_MS = 20_000;
const ONE_LOOK_MS = 10_000;
const LOOK_AGAIN_MS = 500;

/** The running server of a folder, started if there is none. Callers may race: all get the same one. */
export async function ensureServer(program: ServerProgram, control: EnsureControl): Promise<ServerRuntime> {
  prepareFolder(program.folder);
  for (let isLastTry = false; ; isLastTry = true) {
    const runtime = await findOrStart(program, control);
    try {
      return await waitForHealth(program, runtime, control);
    } catch (error) {
      // A server on its way out still has its process but answers no more: once that has gone, another is started.
      if (isLastTry || !(await hasEnded(runtime.process, LEAVING_MS))) throw error;
    }
  }
}

async function findOrStart(program: ServerProgram, control: EnsureControl): Promise<ServerRuntime> {
  const { folder } = program;
  const running = () => {
    const found = readRuntime(folder);
    return found.state === "running" ? found.runtime : undefined;
  };
  const release = await takeTurnUnless(() => running() !== undefined, folder, control.signal).catch(
    refuseFolder(folder),
  );
  try {
    const found = running();
    if (found) refuseOthers(program, found);
    return found ?? (await start(program, control));
  } finally {
    release?.();
  }
}

function prepareFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    const log = logPath(folder);
    const size = statSync(log, { throwIfNoEntry: false })?.size ?? 0;
    if (size > MOST_LOG_BYTES) renameSync(log, join(folder, "log.old.txt"));
  } catch (error) {
    // Put aside by another who needs the server, a moment before.
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") refuseFolder(folder)(error);
  }
}

function refuseOthers(program: ServerProgram, found: ServerRuntime): void {
  const differs = program.differs(found);
  if (differs)
    fail(
      "RL5008",
      `The server in ${program.folder} already runs ${differs}. Stop it first; it then starts with the new settings.`,
    );
}

async function start(program: ServerProgram, control: EnsureControl): Promise<ServerRuntime> {
  const { folder, what } = program;
  control.onPhase?.(`starting the ${what}`);
  await launch(await program.prepare(), control).catch(refuseFolder(folder));
  const found = readRuntime(folder);
  if (found.state !== "running") throw startFailure({ folder, what }, "it ended right after it had started");
  return found.runtime;
}

/** The runtime as it is when the server answers: one that started again meanwhile is another life. Throws RL5003. */
async function waitForHealth(
  program: ServerProgram,
  first: ServerRuntime,
  control: EnsureControl,
): Promise<ServerRuntime> {
  const until = performance.now() + program.healthTimeoutMs;
  for (let runtime = first, isSaid = false; ; isSaid = true) {
    const fault = await healthFault(runtime, control.signal);
    if (fault === undefined) return runtime;
    if (performance.now() > until || !isAlive(runtime.process)) return failHealth(program, runtime, fault);
    if (!isSaid) control.onPhase?.(`waiting for the ${program.what}`);
    await delay(LOOK_AGAIN_MS, undefined, control.signal ? { signal: control.signal } : {});
    const found = readRuntime(program.folder);
    if (found.state === "running") runtime = found.runtime;
  }
}

/** Why it cannot be used at the moment; undefined where it can. */
async function healthFault(runtime: ServerRuntime, signal: AbortSignal | undefined): Promise<string | undefined> {
  try {
    const headers = { "X-API-Key": runtime.token };
    return await withDeadline(ONE_LOOK_MS, signal, async (limit) => {
      const response = await fetch(`${runtime.url}/api/v1/healthz`, { headers, signal: limit });
      const body = (await response.json()) as { serverRun?: string };
      const run = response.headers.get("x-rlcli-server-run") ?? body.serverRun;
      return run === runtime.serverRun ? undefined : `another program answers there (status ${response.status})`;
    });
  } catch (error) {
    signal?.throwIfAborted();
    return messageOf(error);
  }
}

function failHealth({ folder, what }: ServerProgram, runtime: ServerRuntime, fault: string): never {
  return fail(
    "RL5003",
    `The ${what}'s process ${runtime.process.pid} lives, but ${runtime.url} does not answer as it should: ${fault}. The end of ${logPath(folder)}:\n${logTail(folder)}`,
  );
}
