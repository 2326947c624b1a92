/**
 * `type: module` — a JavaScript file of the user's: its default export, or its export `grade`, gets
 * `{ prompt, completion, row, turn }` and returns a number or `{ reward, metrics, note }`, at once or as a promise. `{ messages }` instead
 * goes on: they are said to the policy, and its next answer comes with the whole conversation as `prompt`. It runs in a
 * thread of its own, so that one which never returns can be ended.
 */
import { existsSync } from "node:fs";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { diagnostic, fail, RlcliError } from "../../diagnostic.ts";
import type { ChatMessage, Grade, GradeRequest, Grader, Reply } from "../grader.ts";
import { Pool } from "../pool.ts";
import { readGrade } from "./answer.ts";

export interface ModuleOptions {
  /** Absolute. TypeScript where the running Node reads it (22.18 and later). */
  readonly path: string;
  readonly concurrency: number;
  readonly timeoutMs: number;
}

/** Throws RL7102 where there is no such file. */
export function moduleGrader(options: ModuleOptions): Grader {
  if (!existsSync(options.path)) fail("RL7102", `The grader's module ${options.path} does not exist.`);
  const pool = new Pool(options.concurrency, () => new GraderThread(options));
  const respond = (request: GradeRequest) => pool.use((thread) => thread.ask(request));
  const grade = async (request: GradeRequest): Promise<Grade> => {
    const answer = await respond(request);
    if (!("messages" in answer)) return answer;
    return fail("RL7103", `The grader ${options.path} answered back where only a grade counts.`);
  };
  return { grade, respond, close: () => pool.close() };
}

/** What runs in the thread. Plain text, since it has no imports of ours and must not depend on how rlcli is bundled. */
const THREAD = `
const { parentPort, workerData } = require("node:worker_threads");
const loading = import(workerData.url).then((module) => {
  const grade = module.grade ?? module.default;
  if (typeof grade !== "function") throw new Error("it exports neither a function grade nor a default function");
  return grade;
});
loading.catch(() => {});
parentPort.on("message", async ({ id, request }) => {
  let grade;
  try {
    grade = await loading;
  } catch (error) {
    parentPort.postMessage({ id, loadError: String(error?.message ?? error) });
    return;
  }
  try {
    parentPort.postMessage({ id, value: JSON.parse(JSON.stringify((await grade(request)) ?? null)) });
  } catch (error) {
    parentPort.postMessage({ id, error: String(error?.stack ?? error) });
  }
});
`;

interface ThreadAnswer {
  readonly id: number;
  readonly value?: unknown;
  readonly error?: string;
  readonly loadError?: string;
}

class GraderThread {
  readonly #options: ModuleOptions;
  readonly #worker: Worker;
  #isUsable = true;
  #nextId = 0;

  constructor(options: ModuleOptions) {
    this.#options = options;
    this.#worker = new Worker(THREAD, { eval: true, workerData: { url: pathToFileURL(options.path).href } });
    // Also where its own code ended it, between two questions.
    for (const event of ["error", "exit"]) {
      this.#worker.on(event, () => {
        this.#isUsable = false;
      });
    }
    this.#worker.unref();
  }

  get isUsable(): boolean {
    return this.#isUsable;
  }

  async ask({ prompt, completion, row, turn = 0, signal }: GradeRequest): Promise<Grade | Reply> {
    const who = `The grader ${this.#options.path}`;
    const answer = await this.#exchange({ prompt, completion, row, turn }, signal, who);
    if (answer.loadError !== undefined) {
      fail("RL7102", `${who} cannot be loaded: ${answer.loadError}. ${HINT}`);
    }
    if (answer.error !== undefined) fail("RL7103", `${who} threw: ${answer.error.split("\n").slice(0, 3).join(" ")}`);
    return readReply(answer.value) ?? readGrade(answer.value, who);
  }

  async close(): Promise<void> {
    this.#isUsable = false;
    await this.#worker.terminate();
  }

  #exchange(request: object, signal: AbortSignal, who: string): Promise<ThreadAnswer> {
    const id = this.#nextId++;
    const { timeoutMs } = this.#options;
    return new Promise((resolve, reject) => {
      const giveUp = (reason: string) => {
        settle();
        void this.close();
        reject(new RlcliError(diagnostic("RL7103", `${who} ${reason}.`)));
      };
      const timer = setTimeout(() => giveUp(`did not answer within ${timeoutMs / 1000} s`), timeoutMs);
      const onAbort = () => giveUp("was interrupted");
      const onMessage = (answer: ThreadAnswer) => {
        if (answer.id !== id) return;
        settle();
        resolve(answer);
      };
      const onExit = () => giveUp("ended its thread");
      const settle = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", onAbort);
        this.#worker.off("message", onMessage).off("exit", onExit);
      };
      this.#worker.on("message", onMessage).on("exit", onExit);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      else this.#worker.postMessage({ id, request });
    });
  }
}

/** `{ messages }` of the form that a conversation has; undefined where it is something else. */
function readReply(value: unknown): Reply | undefined {
  const { messages } = (value ?? {}) as { messages?: unknown };
  if (!Array.isArray(messages) || messages.length === 0) return undefined;
  const isOne = ({ role, content }: Partial<ChatMessage>) => typeof role === "string" && typeof content === "string";
  return messages.every((message) => isOne(message ?? {})) ? { messages } : undefined;
}

const HINT =
  "It must export a function `grade`, or one as its default. TypeScript needs Node 22.18 or later; on older ones write it in JavaScript.";
