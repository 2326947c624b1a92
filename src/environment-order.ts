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

/** How a policy acts on tasks in sandboxes, and what ends it. */
export interface AgentOrder {
  /** Instead of the usual system message; empty for none. */
  readonly system?: string;
  readonly tool_format: "auto" | "hermes" | "qwen_xml" | "llama" | "bash_block";
  /** Answers in one step of a task. */
  readonly max_turns: number;
  readonly command_timeout_ms: number;
  /** Over the tasks' own limits. */
  readonly agent_timeout_ms?: number;
  /** Prompt and answers of one conversation. */
  readonly max_trajectory_tokens?: number;
  /** Kept of each stream of a command: the first and the last half. */
  readonly output_bytes: number;
  /** Where an attempt ends by a limit on its answers: this reward, or the tests. */
  readonly on_limit: "penalty" | "grade";
  readonly limit_reward: number;
  /** Malformed calls in a row that are answered. */
  readonly malformed_retries: number;
  /** Which of a task's rewards counts. */
  readonly reward_key?: string;
}

export interface SandboxLimits {
  readonly concurrency: number;
  /** Of a sandbox whose task says nothing. */
  readonly memory_bytes: number;
  readonly total_memory_bytes?: number;
  readonly pids: number;
  /** `task`: as each task says. */
  readonly network: "task" | "none" | "public";
  readonly security: "compat" | "hardened";
  readonly lifetime_ms: number;
  /** Addresses of daemons; as DOCKER_HOST says where absent. */
  readonly host?: string | readonly string[];
  /** Sandboxes of attempts that were lost to a fault stay, to be looked at. */
  readonly keep_failed: boolean;
}

/** Tasks in sandboxes. */
export interface HarborOrder {
  /** Labels of the containers. */
  readonly project: string;
  readonly label: string;
  readonly tasks: readonly { readonly name: string; readonly folder: string; readonly digest: Digest }[];
  readonly agent: AgentOrder;
  readonly sandbox: SandboxLimits;
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
  /** Of environments of type `harbor`, which have no graders and no rows. */
  readonly harbor?: HarborOrder;
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
