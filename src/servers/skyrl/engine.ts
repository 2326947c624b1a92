/** One life of a SkyRL server's processes, under their guard. */
import { type ChildProcess, spawn } from "node:child_process";
import { delimiter } from "node:path";
import { StringDecoder } from "node:string_decoder";
import { type ProcessIdentity, processIdentity } from "../../process.ts";
import { errorLines, type RotatingLog } from "../log.ts";
import type { LaunchCommand } from "./command.ts";
import { GUARD, MARKER } from "./guard.ts";
import { type RemoteLaunch, remoteCommand } from "./remote.ts";

/** How an engine ended by itself. */
export interface EngineEnd {
  readonly code: number;
  /** Lines of its log that most likely say why. */
  readonly lines: readonly string[];
}

/** How long SkyRL may take to end after it was told to, before it is killed. */
const GRACE_SECONDS = 15;
/** Characters of its words that are kept for the case that it dies. */
const KEPT_CHARACTERS = 100_000;
/** Ray's exception for a worker that is gone for good. */
const WORKER_DIED = /\b(ActorDiedError|RayActorError)\b/;
const WORKER_DIED_CHARACTERS = 20;

export interface EngineOptions {
  readonly command: LaunchCommand;
  /** Python that runs the guard. */
  readonly python: string;
  /** Same for all lives of one server: what an earlier one left is found by it. */
  readonly marker: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly log: RotatingLog;
  /** Whether it has workers on a Ray cluster. */
  readonly hasWorkers: boolean;
  /** Where it runs on another machine: what `remoteCommand` wants. */
  readonly remote?: Pick<RemoteLaunch, "host" | "port" | "remotePort" | "folder">;
}

/** Program and arguments. The guard runs where SkyRL does. */
function commandOf({ command, python, marker, env, remote }: EngineOptions): readonly string[] {
  if (remote) return remoteCommand(command, { ...remote, marker, python, graceSeconds: GRACE_SECONDS }, env);
  return [python, "-I", "-c", GUARD, String(GRACE_SECONDS), command.program, ...command.arguments];
}

export class Engine {
  readonly #child: ChildProcess;
  #said = "";
  /** Resolves when nothing of it runs any more. */
  readonly ended: Promise<EngineEnd>;

  constructor(options: EngineOptions) {
    const { command, marker, env, cwd, log, remote } = options;
    const path = [...command.path, env.PATH ?? ""].join(delimiter);
    const [program, ...args] = commandOf(options) as [string, ...string[]];
    this.#child = spawn(program, args, {
      // A group of its own: a Ctrl-C in the terminal is not for it.
      detached: true,
      cwd,
      stdio: ["pipe", "pipe", "pipe"],
      env: remote ? { ...env } : { ...env, ...command.environment, PATH: path, [MARKER]: marker },
    });
    this.#child.stdin?.on("error", () => {});
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      const decoder = new StringDecoder("utf8");
      stream?.on("data", (bytes: Buffer) => {
        log.write(bytes);
        const text = decoder.write(bytes);
        this.#said = (this.#said + text).slice(-KEPT_CHARACTERS);
        if (options.hasWorkers && WORKER_DIED.test(this.#said.slice(-text.length - WORKER_DIED_CHARACTERS)))
          this.#giveUp(log);
      });
    }
    this.ended = new Promise((resolve) => {
      this.#child.once("error", (error) => resolve({ code: 1, lines: [error.message] }));
      this.#child.once("close", (code, signal) =>
        resolve({ code: code ?? (signal ? 128 : 1), lines: errorLines(this.#said) }),
      );
    });
  }

  get identity(): ProcessIdentity | undefined {
    return this.#child.pid === undefined ? undefined : processIdentity(this.#child.pid);
  }

  /**
   * Without one of its workers SkyRL lives on and answers every request with an error, for good: it starts workers only once. So it
   * is ended, as if it had crashed, and starts again with new ones.
   */
  #giveUp(log: RotatingLog): void {
    if (this.#child.stdin?.writableEnded) return;
    log.line("a worker on the Ray cluster has died: ending the server, which cannot work without it");
    this.#child.stdin?.end();
  }

  /** Ends it and everything that it started. */
  async stop(): Promise<void> {
    this.#child.stdin?.end();
    await this.ended;
  }
}
