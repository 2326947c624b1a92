/** Flags of `rlcli sample`, and what its forms (one question, a batch, a conversation) share. */
import { type AnswerWishes, type ChatModel, type Ending, type Piece, wholeAnswer } from "../chat/answer.ts";
import type { Conversation } from "../tokens/conversation.ts";
import type { WeightFlags } from "./target.ts";

export interface SampleFlags extends WeightFlags {
  readonly prompt?: string;
  readonly system?: string;
  readonly maxTokens: number;
  readonly temperature: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly seed?: number;
  readonly stop?: readonly string[];
  readonly num: number;
  readonly input?: string;
  readonly output?: string;
  readonly concurrency: number;
}

export const SAMPLE_JSON_VERSION = 1;

export function questionOf(prompt: string, system: string | undefined): Conversation {
  return {
    messages: [...(system ? [{ role: "system", content: system }] : []), { role: "user", content: prompt }],
  };
}

export function wishesOf(flags: SampleFlags): AnswerWishes {
  const { maxTokens, temperature, topP, topK, seed, stop } = flags;
  return {
    maxTokens,
    temperature,
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined ? {} : { topK }),
    ...(seed === undefined ? {} : { seed }),
    ...(stop === undefined ? {} : { stop }),
  };
}

/** Sample `i` of several is that of the seed and its number, as a server gives several at once. */
export const seedOf = (wishes: AnswerWishes, i: number): AnswerWishes =>
  wishes.seed === undefined ? wishes : { ...wishes, seed: wishes.seed + i };

/** All samples of one question, together. */
export function wholeAnswers(
  model: ChatModel,
  prompt: Int32Array,
  wishes: AnswerWishes,
  count: number,
  signal: AbortSignal,
): Promise<readonly (Piece & Ending)[]> {
  return Promise.all(Array.from({ length: count }, (_, i) => wholeAnswer(model, prompt, seedOf(wishes, i), signal)));
}
