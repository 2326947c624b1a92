/**
 * `type: command` — any program as a grader. It is started once per place in the pool and asked one line of JSON at a time:
 *
 *   → {"prompt": [...], "completion": "...", "row": {...}}
 *   ← 1.0                       or {"reward": 1.0, "metrics": {...}, "note": "..."}
 *
 * A program that takes too long, prints more than that line, or ends, is killed with all it started, and another is started for
 * the next question.
 */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { diagnostic, fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { onceEnded } from "../../process.ts";
import type { Grade, GradeRequest, Grader } from "../grader.ts";
import { Pool } from "../pool.ts";
import { readGrade } from "./answer.ts";

export interface CommandOptions {
  /** Program and arguments; no shell is involved. */
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Programs at work at once. */
  readonly concurrency: number;
  /** For one answer. */
  readonly timeoutMs: number;
}

const STDERR_TAIL = 2000;

export function commandGrader(options: CommandOptions): Grader {
  const pool = new Pool(options.concurrency, () => new GraderProcess(options));
  return {
    grade: (request) => pool.use((process) => process.ask(request)),
    close: () => pool.close(),
  };
}

class GraderProcess {
  readonly #options: CommandOptions;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #name: string;
  #stderr = "";
  /** What follows the last newline of its output. */
  #rest = "";
  /** Why it is of no more use. */
  #ended: string | undefined;
  #hasExited = false;
  #waiting: { resolve(line: string): void; reject(error: unknown): void } | undefined;

  constructor(options: CommandOptions) {
    this.#options = options;
    this.#name = `The grader \`${options.command.join(" ")}\``;
    const [program = "", ...args] = options.command;
    // A process group of its own, so that what it starts dies with it.
    this.#child = spawn(program, args, { cwd: options.cwd, env: options.env as NodeJS.ProcessEnv, detached: true });
    this.#child.on("error", (error) => this.#end(`cannot be started: ${messageOf(error)}`));
    this.#child.once("exit", () => {
      this.#hasExited = true;
    });
    onceEnded(this.#child, (code, signal) => this.#end(`ended with ${signal ?? `exit code ${code}`}`));
    this.#child.stdin.on("error", () => {});
    this.#child.stderr.on("data", (chunk: Buffer) => {
      this.#stderr = (this.#stderr + chunk.toString("utf8")).slice(-STDERR_TAIL);
    });
    // Lines end at a newline only: readline of newer Node versions also ends them at U+2028, which JSON may hold.
    this.#child.stdout.setEncoding("utf8").on("data", (text: string) => this.#read(text));
  }

  get isUsable(): boolean {
    return this.#ended === undefined && !this.#hasExited;
  }

  async ask({ prompt, completion, row, signal }: GradeRequest): Promise<Grade> {
    const line = await this.#exchange(oneLine({ prompt, completion, row }), signal);
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch {
      this.close();
      return fail(
        "RL7103",
        `${this.#name} printed \`${line.slice(0, 200)}\`, which is not JSON. It must answer each line with one line of JSON; print anything else to stderr.`,
      );
    }
    return readGrade(value, this.#name);
  }

  close(): void {
    this.#end("was closed");
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // The group has ended by itself.
    }
  }

  #exchange(question: string, signal: AbortSignal): Promise<string> {
    return new Promise((resolve, reject) => {
      const { timeoutMs } = this.#options;
      const timer = setTimeout(() => this.#giveUp(`did not answer within ${timeoutMs / 1000} s`), timeoutMs);
      const onAbort = () => this.#giveUp("was interrupted");
      signal.addEventListener("abort", onAbort, { once: true });
      const done = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.#waiting = undefined;
      };
      this.#waiting = {
        resolve: (line) => {
          done();
          resolve(line);
        },
        reject: (error) => {
          done();
          reject(error as Error);
        },
      };
      if (this.#ended !== undefined) this.#rejectWaiting(this.#ended);
      else if (signal.aborted) onAbort();
      else this.#child.stdin.write(`${question}\n`);
    });
  }

  #read(text: string): void {
    const lines = `${this.#rest}${text}`.split("\n");
    this.#rest = lines.pop() ?? "";
    const [answer, more] = lines;
    if (answer === undefined) return;
    // Which of several lines is the answer is anybody's guess, and a late one would be taken for the next question's.
    if (more !== undefined || !this.#waiting)
      this.#giveUp(`printed \`${(more ?? answer).slice(0, 200)}\` beside its answer, where one line was asked for`);
    else this.#waiting.resolve(answer.replace(/\r$/, ""));
  }

  #giveUp(reason: string): void {
    this.#end(reason);
    this.close();
  }

  #end(reason: string): void {
    this.#ended ??= reason;
    this.#rejectWaiting(reason);
  }

  #rejectWaiting(reason: string): void {
    const words = this.#stderr.trim() === "" ? "" : ` It said: ${this.#stderr.trim()}`;
    const isStart = reason.startsWith("cannot be started");
    const problem = diagnostic(isStart ? "RL7102" : "RL7103", `${this.#name} ${reason}.${words}`);
    this.#waiting?.reject(new RlcliError(problem));
  }
}

/** JSON without the two separators that some readers take for the end of a line. */
function oneLine(question: object): string {
  return JSON.stringify(question)
    .replace(/\u2028/g, "\\u2028")
    .replace(/\u2029/g, "\\u2029");
}
