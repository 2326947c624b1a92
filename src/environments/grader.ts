/**
 * A grader turns a completion into a reward. Built-in ones are in `graders/`; all have this shape, so that a loop, an eval and a
 * regrade of saved rollouts treat them alike. Whatever a grader cannot judge is an error, never silently 0.
 */
import type { JsonObject } from "../value.ts";

/** One turn of a conversation. Further fields (`tool_calls`, `name`) reach the model's template as they are. */
export interface ChatMessage {
  readonly role: string;
  readonly content: string;
  readonly [field: string]: unknown;
}

export interface GradeRequest {
  /** The conversation that was answered. */
  readonly prompt: readonly ChatMessage[];
  /** The answer's text, without the token that ends the turn. */
  readonly completion: string;
  /** The task's row: fields that the grader's options name. */
  readonly row: JsonObject;
  /** Which answer of the policy this is, from 0. */
  readonly turn?: number;
  readonly signal: AbortSignal;
}

/** Rewards lie between this and its negative: larger ones would overflow the 32-bit numbers that gradients are made of. */
export const LARGEST_REWARD = 1e9;

/** Whether a number can be a reward. */
export const isReward = (value: unknown): value is number =>
  typeof value === "number" && Math.abs(value) <= LARGEST_REWARD;

export interface Grade {
  /** As `isReward` has it. */
  readonly reward: number;
  /** Further numbers to log, averaged over rollouts: `extracted`, `format/boxed`, … */
  readonly metrics: Readonly<Record<string, number>>;
  /** For people who look at rollouts: what was found in the text. */
  readonly note?: string;
  /** What the answer's tools gave, where the policy does not get to see it any more. */
  readonly outputs?: readonly ChatMessage[];
}

/** What is said to the policy instead of a grade: it answers again. */
export interface Reply {
  readonly messages: readonly ChatMessage[];
  /** They begin a conversation of their own; what was said before is not shown again. */
  readonly isFresh?: boolean;
  /** As of a grade, where the conversation ends here. */
  readonly outputs?: readonly ChatMessage[];
}

export interface Grader {
  /** Judges one completion. Rejects where it could not be judged; aborting the signal rejects too. */
  grade(request: GradeRequest): Promise<Grade>;
  /** Of a grader that may answer back. */
  respond?(request: GradeRequest): Promise<Grade | Reply>;
  /** Ends processes and connections of the grader. */
  close(): Promise<void>;
}

/** A field of a row as text: numbers and booleans as JSON writes them. Undefined where it is missing or a structure. */
export function fieldText(row: JsonObject, field: string): string | undefined {
  const value = row[field];
  if (typeof value === "string") return value;
  return typeof value === "number" || typeof value === "boolean" ? String(value) : undefined;
}
