/** Commands in a container: their streams, their exit code, and their end in time together with all that they started. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { LONGEST_TIMER_MS } from "../../abort.ts";
import { fail, messageOf } from "../../diagnostic.ts";
import { failSandbox, within } from "./daemon.ts";
import { FrameReader, HeadTail, MarkedStream } from "./output.ts";
import type { Command, CommandResult } from "./sandbox.ts";
import { BOOT, KILL_SCRIPT, RUN_FILE_SCRIPT, RUN_SCRIPT } from "./scripts.ts";

/** The kernel takes 128 KiB for one argument. */
const LONGEST_ARGUMENT = 100_000;
/** The daemon's own answers. */
const API_TIMEOUT_MS = 30_000;
const KILL_TIMEOUT_MS = 10_000;
/** After its kill a command's streams end at once, unless a process of another command holds them. */
const KILLED_GRACE_MS = 500;
const BEGIN_POLL_MS = 50;
const KEEP_BYTES = 64 * 1024;
const TIMED_OUT = 124;
/** By SIGKILL: of itself, or with its container. */
const KILLED = 137;
const DYING_MS = 1000;
const DYING_POLL_MS = 100;

/** Puts a command that is too long for an argument into a file of the container, and gives its path. */
export type PutScript = (text: string) => Promise<string>;

/** What a command's container allows, for when it has to be rescued. */
export interface CommandPlace {
  readonly container: Docker.Container;
  /** Processes at the most. */
  readonly pids: number;
  readonly putScript: PutScript;
  /** Takes how many processes of the container were killed for memory, and gives how many of them are new. */
  newMemoryKills(total: number): number;
}

export async function runCommand(place: CommandPlace, command: Command): Promise<CommandResult> {
  if (command.command.includes("\0")) fail("RL7303", "A command with a NUL byte cannot be run.");
  command.signal?.throwIfAborted();
  const isLong = Buffer.byteLength(command.command) > LONGEST_ARGUMENT;
  const argument = isLong ? await place.putScript(command.command) : command.command;
  const run = () => new Running(place, command).run(isLong ? RUN_FILE_SCRIPT : RUN_SCRIPT, argument);
  try {
    return await run();
  } catch (error) {
    if (!NO_PROCESS_LEFT.test(messageOf(error))) throw error;
    await rescue(place);
    return run();
  }
}

/** How a daemon says that a container has no room for another process. */
const NO_PROCESS_LEFT =
  /could not be started in the container: .*(?:temporarily unavailable|connection reset|init-p|cannot allocate)/is;

/**
 * A container whose processes have taken all places (a fork bomb) lets nobody in to kill them: it is given a few more for as long
 * as that takes. All that commands have started is killed, servers too.
 */
async function rescue({ container, pids }: CommandPlace): Promise<void> {
  const limit = (PidsLimit: number) => within(API_TIMEOUT_MS, container.update({ PidsLimit }), "The daemon");
  await limit(pids + RESCUE_PIDS);
  try {
    for (let left = 1, tries = 0; left > 0; tries += 1) {
      if (tries === RESCUE_TRIES) fail("RL7303", "The container is full of processes that cannot be killed.");
      left = await killAll(container, "*", "0").catch(() => 1);
    }
  } finally {
    await limit(pids);
  }
}

const RESCUE_PIDS = 128;
const RESCUE_TRIES = 5;

class Running {
  readonly #place: CommandPlace;
  readonly #container: Docker.Container;
  readonly #command: Command;
  readonly #id: string;
  readonly #outs: readonly [HeadTail, HeadTail];
  readonly #streams: readonly [MarkedStream, MarkedStream];

  constructor(place: CommandPlace, command: Command) {
    this.#place = place;
    this.#container = place.container;
    this.#command = command;
    this.#id = randomBytes(12).toString("hex");
    const keep = command.keepBytes ?? KEEP_BYTES;
    this.#outs = [new HeadTail(keep), new HeadTail(keep)];
    const mark = `\u0001rlcli-end ${randomBytes(12).toString("hex")} `;
    this.#streams = [new MarkedStream(mark, this.#outs[0]), new MarkedStream(mark, this.#outs[1])];
    this.#mark = mark;
  }

  readonly #mark: string;

  async run(script: string, argument: string): Promise<CommandResult> {
    const { user, env, cwd, timeoutMs, signal } = this.#command;
    const began = performance.now();
    const exec = await this.#api(
      this.#container.exec({
        Cmd: ["bash", "-c", BOOT],
        Env: [
          ...Object.entries(env ?? {}).map(([name, value]) => `${name}=${value}`),
          `RLCLI_EXEC=${this.#id}`,
          `RLCLI_SCRIPT=${script}`,
          `RLCLI_COMMAND=${argument}`,
          `RLCLI_MARK=${this.#mark}`,
          `RLCLI_CWD=${cwd ?? "/"}`,
        ],
        // The script goes to the directory itself: one that is gone must not keep a command from running.
        WorkingDir: "/",
        AttachStdout: true,
        AttachStderr: true,
        ...(user === undefined ? {} : { User: user }),
      }),
    );
    const stream = await this.#api(exec.start({ Detach: false, Tty: false }) as Promise<NodeJS.ReadableStream>);
    const ended = this.#read(stream);
    const timer = new AbortController();
    const late = sleep(Math.min(timeoutMs, LONGEST_TIMER_MS), "late" as const, { signal: timer.signal }).catch(
      () => "late" as const,
    );
    const aborted = abortion(signal, timer.signal);
    try {
      const how = await Promise.race([ended, late, aborted]);
      const hasTimedOut = how === "late" || how === "aborted";
      if (hasTimedOut) await this.#kill(exec, ended);
      if (hasTimedOut) for (const one of this.#streams) one.end();
      signal?.throwIfAborted();
      const [status, kills = 0] = this.#streams[0].values ?? [];
      const exitCode = hasTimedOut ? TIMED_OUT : (status ?? (await this.#exitCode(exec)));
      const memoryKills = this.#place.newMemoryKills(kills);
      const [stdout, stderr] = this.#outs.map((out) => out.output()) as [
        CommandResult["stdout"],
        CommandResult["stderr"],
      ];
      return { exitCode, hasTimedOut, memoryKills, stdout, stderr, durationMs: performance.now() - began };
    } finally {
      timer.abort();
      destroy(stream);
    }
  }

  #api<T>(work: Promise<T>): Promise<T> {
    return within(API_TIMEOUT_MS, work, "The daemon").catch((error: unknown) =>
      failSandbox("The command could not be started", error),
    );
  }

  /** Ends with both marks, or with the streams. */
  #read(stream: NodeJS.ReadableStream): Promise<"ended"> {
    const frames = new FrameReader((which, bytes) => this.#streams[which - 1]?.push(bytes));
    return new Promise((resolve) => {
      const end = (): void => {
        for (const one of this.#streams) if (one.values === undefined) one.end();
        resolve("ended");
      };
      stream.on("data", (chunk: Buffer) => {
        frames.push(chunk);
        if (this.#streams.every(({ values }) => values !== undefined)) resolve("ended");
      });
      for (const event of ["end", "close", "error"]) stream.on(event, end);
    });
  }

  /** Without a mark: the script itself was killed, or never began. */
  async #exitCode(exec: Docker.Exec): Promise<number> {
    for (let tries = 0; ; tries += 1) {
      const { Running: isRunning, ExitCode, Pid } = await this.#api(exec.inspect());
      if (!isRunning && ExitCode !== null) {
        if (Pid !== 0) {
          await this.#requireAlive(ExitCode === KILLED ? DYING_MS : 0);
          return ExitCode;
        }
        const said = this.#outs
          .map((out) => out.output().text)
          .join("")
          .trim();
        return fail("RL7303", `The command could not be started in the container: ${said || `exit code ${ExitCode}`}.`);
      }
      if (tries > 20) fail("RL7303", "The daemon does not tell how a command ended.");
      await sleep(50);
    }
  }

  /** The end of a container is told a moment later than that of its commands. */
  async #requireAlive(withinMs: number): Promise<void> {
    for (let left = withinMs; ; left -= DYING_POLL_MS) {
      const { State } = await this.#api(this.#container.inspect());
      if (!State.Running) fail("RL7303", "The container ended while a command ran in it.");
      if (left <= 0) return;
      await sleep(DYING_POLL_MS);
    }
  }

  /** The daemon answers before the command's first process is there: killed before that, it would be missed and live on. */
  async #begun(exec: Docker.Exec): Promise<void> {
    for (let left = API_TIMEOUT_MS; left > 0; left -= BEGIN_POLL_MS) {
      const { Pid, ExitCode } = await this.#api(exec.inspect());
      if (Pid !== 0 || ExitCode !== null) return;
      await sleep(BEGIN_POLL_MS);
    }
    fail("RL7303", "A command that is to be killed does not begin.");
  }

  /** As the command's own user, who may look at its processes, and as root, who may reach those that changed their user. */
  async #kill(exec: Docker.Exec, ended: Promise<unknown>): Promise<void> {
    await this.#begun(exec);
    const users = [...new Set([this.#command.user, "0"])];
    let left = 0;
    try {
      for (const user of users) left = await killAll(this.#container, this.#id, user);
    } catch {
      await rescue(this.#place);
    }
    // What was still on its way.
    await Promise.race([ended, sleep(KILLED_GRACE_MS)]);
    if (left > 0) fail("RL7303", "A command that ran too long could not be killed.");
  }
}

/** Kills the processes of a command, as one user; gives how many are left. */
async function killAll(container: Docker.Container, id: string, user: string | undefined): Promise<number> {
  const work = async (): Promise<number> => {
    const exec = await container.exec({
      Cmd: ["bash", "-c", BOOT],
      Env: [`RLCLI_SCRIPT=${KILL_SCRIPT}`, `RLCLI_KILL=${id}`],
      WorkingDir: "/",
      AttachStdout: true,
      AttachStderr: true,
      ...(user === undefined ? {} : { User: user }),
    });
    const stream = (await exec.start({ Detach: false, Tty: false })) as NodeJS.ReadableStream;
    const out = new HeadTail(1024);
    const frames = new FrameReader((which, bytes) => which === 1 && out.push(bytes));
    try {
      for await (const chunk of stream) {
        frames.push(chunk as Buffer);
        // The number is all that it says; the stream's end may take seconds.
        if (out.output().text.includes("\n")) break;
      }
    } finally {
      destroy(stream);
    }
    const left = Number.parseInt(out.output().text, 10);
    return Number.isNaN(left) ? fail("RL7303", "A kill could not be started.") : left;
  };
  return within(KILL_TIMEOUT_MS, work(), "A kill").catch((error: unknown) =>
    failSandbox("A command could not be killed", error),
  );
}

/** Resolves where the signal is aborted before the other one. */
function abortion(signal: AbortSignal | undefined, over: AbortSignal): Promise<"aborted"> {
  return new Promise((resolve) => {
    if (!signal) return;
    const onAbort = () => resolve("aborted");
    signal.addEventListener("abort", onAbort, { once: true, signal: over });
    if (signal.aborted) onAbort();
  });
}

function destroy(stream: NodeJS.ReadableStream): void {
  stream.on("error", () => {});
  (stream as unknown as { destroy?: () => void }).destroy?.();
}
