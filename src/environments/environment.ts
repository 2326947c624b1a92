/**
 * An environment at work: tasks, and an episode for each attempt at one. In an episode the policy answers, and what comes back
 * is either a grade, which ends it, or messages, after which it answers again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { RlcliError } from "../diagnostic.ts";
import type { EnvironmentOrder } from "../environment-order.ts";
import type { JsonObject } from "../value.ts";
import { composeGraders } from "./compose.ts";
import { type ChatMessage, fieldText, type Grade, type GradeRequest, type Grader, type Reply } from "./grader.ts";
import { type GraderContext, gradesAtOnce, openGrader } from "./graders/registry.ts";
import { Limit } from "./limit.ts";
import { taskMessages } from "./prompt.ts";
import type { SandboxMeter } from "./sandbox/meter.ts";
import { openTasks, type TaskStore } from "./tasks.ts";

export interface Environment {
  /** Tasks there are. */
  readonly count: number;
  /** Of one whose attempts are made in sandboxes. */
  readonly sandboxes?: SandboxMeter;
  /** The value of the row's tag field, where the environment has one. */
  tagOf(task: number): string | undefined;
  /** Where tasks have names. */
  nameOf?(task: number): string | undefined;
  /** Begins an attempt at a task. */
  open(task: number, signal: AbortSignal): Promise<Episode>;
  close(): Promise<void>;
}

/** What the policy said. */
export interface Answer {
  readonly text: string;
  /** It ended by itself, not at a limit of tokens. */
  readonly isWhole: boolean;
  /** There will be no other: whatever comes back but a grade ends the attempt as lost. */
  readonly isLast: boolean;
}

export type Response = Grade | Reply;

export interface Episode {
  /** What the policy is asked first. */
  readonly messages: readonly ChatMessage[];
  /** Definitions of tools, as chat-completions APIs take them. */
  readonly tools?: readonly unknown[];
  /** Answers of the policy at the most. */
  readonly maxTurns: number;
  /** Tokens of a conversation, the next answer included, at the most. Needs `tooLong`. */
  readonly maxTokens?: number;
  /** Ends the attempt because the next answer would not fit any more. */
  tooLong?(): Promise<Grade>;
  /** Takes an answer. Rejects where it cannot be judged, after all retries. */
  respond(answer: Answer): Promise<Response>;
  /** Frees what the episode holds, however it ended. */
  close(): Promise<void>;
}

/** Fails with RL7102 (a grader), RL8002 (the tasks), or as `openHarbor` does. */
export async function openEnvironment(order: EnvironmentOrder, context: GraderContext): Promise<Environment> {
  if (order.harbor) return (await import("./harbor/environment.ts")).openHarbor(order, context);
  const tasks = await openTasks(order.tasks.path);
  try {
    return new GradedEnvironment(order, tasks, await openGraders(order, context));
  } catch (error) {
    tasks.close();
    throw error;
  }
}

/** All graders of an environment as one. */
export async function openGraders(
  order: Pick<EnvironmentOrder, "graders" | "length_penalty">,
  context: GraderContext,
): Promise<Grader> {
  const parts = await Promise.all(
    order.graders.map(async ({ name, weight, ...rest }) => ({
      name,
      weight,
      grader: await openGrader({ name, weight, ...rest }, context),
    })),
  );
  const [only] = parts;
  const isPlain = parts.length === 1 && only?.weight === 1 && order.length_penalty === undefined;
  return isPlain ? only.grader : composeGraders(parts, order.length_penalty);
}

class GradedEnvironment implements Environment {
  readonly #order: EnvironmentOrder;
  readonly #tasks: TaskStore;
  readonly #grader: Grader;
  readonly #limit: Limit;

  constructor(order: EnvironmentOrder, tasks: TaskStore, grader: Grader) {
    this.#order = order;
    this.#tasks = tasks;
    this.#grader = grader;
    this.#limit = new Limit(Math.min(...order.graders.map(gradesAtOnce)));
  }

  get count(): number {
    return this.#tasks.count;
  }

  tagOf(task: number): string | undefined {
    const { tag } = this.#order;
    return tag === undefined ? undefined : fieldText(this.#tasks.read(task), tag);
  }

  async open(task: number, signal: AbortSignal): Promise<Episode> {
    const row = this.#tasks.read(task);
    const messages = [...taskMessages(this.#order, row)];
    return {
      messages: [...messages],
      maxTurns: this.#order.max_turns,
      respond: (answer) => this.#respond(messages, row, answer, signal),
      close: async () => {},
    };
  }

  /** `messages` grows with the conversation. */
  async #respond(messages: ChatMessage[], row: JsonObject, answer: Answer, signal: AbortSignal): Promise<Response> {
    const turn = messages.filter(({ role }) => role === "assistant").length - this.#order.few_shot.length;
    const request: GradeRequest = { prompt: [...messages], completion: answer.text, row, turn, signal };
    const response = await this.#limit.run(() => this.#gradeWithRetries(request));
    if ("messages" in response) messages.push({ role: "assistant", content: answer.text }, ...response.messages);
    return response;
  }

  async #gradeWithRetries(request: GradeRequest): Promise<Response> {
    for (let left = this.#order.retries; ; left -= 1) {
      try {
        return await (this.#grader.respond ?? this.#grader.grade)(request);
      } catch (error) {
        if (left <= 0 || request.signal.aborted || !isWorthRetrying(error)) throw error;
        await sleep(RETRY_PAUSE_MS, undefined, { signal: request.signal });
      }
    }
  }

  async close(): Promise<void> {
    this.#tasks.close();
    await this.#grader.close();
  }
}

const RETRY_PAUSE_MS = 200;

/** A grader that did not answer may do so the next time; one that cannot be started, or a row without its field, stays so. */
function isWorthRetrying(error: unknown): boolean {
  return !(error instanceof RlcliError) || error.diagnostics.every(({ code }) => code === "RL7103");
}
