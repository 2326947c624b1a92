/**
 * An environment as plain data: what a run's record holds of it, and all that a worker process needs to open it. Secrets are names.
 */
import type { Address } from "./address.ts";
import type { Digest } from "./digest.ts";
import type { JsonObject } from "./value.ts";

/** Rows of a dataset as tasks. */
export interface TasksOrder {
  readonly address: Address;
  readonly digest: Digest;
  /** One JSON object a line, absolute. */
  readonly path: string;
}

export interface GraderOrder {
  readonly type: string;
  /** Of its metrics. */
  readonly name: string;
  readonly weight: number;
  /** The options of its type, as the spec names them. */
  readonly options: JsonObject;
  readonly timeoutMs: number;
  /** Grades at once; as the type has it where absent. */
  readonly concurrency?: number;
  /** Name of the secret that holds its key. */
  readonly apiKey?: string;
}

export interface LengthPenaltyOrder {
  readonly free: number;
  readonly full: number;
  readonly penalty: number;
}

export interface EnvironmentOrder {
  readonly address: Address;
  /** Folder of the spec, where paths in the graders' options start. Absolute. */
  readonly folder: string;
  readonly tasks: TasksOrder;
  /** Field of a row with what the user says. */
  readonly question: string;
  readonly system?: string;
  /** Text around the question; `{field}` stands for a field of the row. */
  readonly prompt?: string;
  readonly few_shot: readonly { readonly question: string; readonly answer: string }[];
  /** Field of a row by whose values evals report apart. */
  readonly tag?: string;
  /** The first is the environment's own; the others are its parts. */
  readonly graders: readonly GraderOrder[];
  readonly length_penalty?: LengthPenaltyOrder;
  /** Answers of the policy at the most. */
  readonly max_turns: number;
  /** How often a grade that failed is tried again. */
  readonly retries: number;
}

/** How answers are sampled. */
export interface SamplingOrder {
  readonly temperature: number;
  readonly top_p: number;
  /** Tokens of one answer at the most. */
  readonly max_tokens: number;
  /** Texts that end an answer, beside the model's own end of a turn. */
  readonly stop: readonly string[];
}

/** A measurement of weights on an environment. */
export interface EvalOrder {
  readonly address: Address;
  readonly environment: EnvironmentOrder;
  readonly sampling: SamplingOrder;
  /** The first so many; all where absent. */
  readonly tasks?: number;
  readonly samples: number;
  readonly seed: number;
  /** An answer counts as right from this reward on. */
  readonly pass_reward: number;
  readonly template_kwargs: Readonly<Record<string, unknown>>;
  /** During training: every so many steps. */
  readonly every: number;
}
