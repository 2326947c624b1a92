/**
 * Answers of a model to a conversation, as they are written. The protocol gives a sample only once it is whole, so a streamed answer is
 * asked for in pieces: each request's prompt is the prompt and what has come. That is the same answer as in one request where nothing
 * random is in it (temperature 0), where no seed was given, and on the embedded server, whose seeds know their place; on any other
 * server an answer with a seed is asked for, and comes, in one piece.
 */
import { setMaxListeners } from "node:events";
import { diagnostic, RlcliError } from "../diagnostic.ts";
import type { SampledSequence } from "../tinker/data.ts";
import { NO_LOGPROB } from "../tinker/proto/topk.ts";
import type { Sampler } from "../tinker/sampler.ts";
import type { Conversation } from "../tokens/conversation.ts";
import type { Renderer } from "../tokens/renderer.ts";
import { findStop, settledLength } from "./text.ts";

/** Weights that can be asked, and how their text is made. */
export interface ChatModel {
  readonly sampler: Sampler;
  readonly renderer: Renderer;
  /** Of prompt and answer together, in tokens; undefined where the server does not tell. */
  readonly contextLength: number | undefined;
  /** Whether an answer with a seed can be asked for in pieces. */
  readonly seedsGoOn: boolean;
}

export interface AnswerWishes {
  /** Longest answer in tokens; what the context leaves where absent. */
  readonly maxTokens?: number;
  readonly temperature: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly seed?: number;
  /** Texts that end an answer and are not part of it. */
  readonly stop?: readonly string[];
  /** How many likeliest tokens to tell for each; 0 is none. */
  readonly topLogprobs?: number;
  /** Whether the answer is wanted as it comes. */
  readonly isStreamed?: boolean;
  readonly templateKwargs?: Readonly<Record<string, unknown>>;
}

export interface AnswerToken {
  readonly id: number;
  /** In nats; undefined where the server gave none. */
  readonly logprob: number | undefined;
  /** The likeliest tokens in its place, likeliest first; empty where not asked for or not given. */
  readonly top: readonly { readonly id: number; readonly logprob: number }[];
}

export interface Piece {
  /** What this piece adds to the text. */
  readonly text: string;
  readonly tokens: readonly AnswerToken[];
}

/** `stop`: the model ended its turn, or a stop string came. `length`: a limit ended it. */
export interface Ending {
  readonly reason: "stop" | "length";
}

/** Where neither the caller nor the server has a limit. */
const DEFAULT_MAX_TOKENS = 2048;

/** [P] Tokens that ask for the next turn. Fails with RL6103 where the template refuses, with RL5015 where there is no room for an answer. */
export function promptOf(
  model: ChatModel,
  conversation: Conversation,
  wishes: Pick<AnswerWishes, "templateKwargs">,
): Int32Array {
  const { templateKwargs } = wishes;
  const prompt = model.renderer.encode(conversation, {
    add_generation_prompt: true,
    ...(templateKwargs ? { template_kwargs: templateKwargs } : {}),
  });
  const { contextLength = Number.POSITIVE_INFINITY } = model;
  if (prompt.length < contextLength) return prompt;
  throw new RlcliError(
    diagnostic(
      "RL5015",
      `The prompt has ${prompt.length} tokens, and the model takes ${contextLength} with the answer. Shorten it.`,
    ),
  );
}

/** The pieces of one answer; their texts together are the text of all its tokens. Fails with TinkerError. */
export async function* answer(
  model: ChatModel,
  prompt: Int32Array,
  wishes: AnswerWishes,
  signal: AbortSignal,
): AsyncGenerator<Piece, Ending> {
  const writing = new Writing(model, prompt, wishes);
  // Many answers at a time wait on one signal.
  setMaxListeners(0, signal);
  for (;;) {
    const sequence = await ask(model, writing, wishes, signal);
    const piece = writing.take(sequence);
    if (piece.text !== "" || piece.tokens.length > 0) yield piece;
    if (writing.ending) return writing.ending;
  }
}

/** The whole answer. */
export async function wholeAnswer(
  model: ChatModel,
  prompt: Int32Array,
  wishes: AnswerWishes,
  signal: AbortSignal,
): Promise<Piece & Ending> {
  const pieces = answer(model, prompt, wishes, signal);
  const texts: string[] = [];
  const tokens: AnswerToken[] = [];
  for (;;) {
    const { value, done } = await pieces.next();
    if (done) return { text: texts.join(""), tokens, reason: value.reason };
    texts.push(value.text);
    for (const token of value.tokens) tokens.push(token);
  }
}

/** The first piece is short, so that something is seen soon; each is half longer than the one before, so that the prompt is read seldom. */
const FIRST_PIECE = 8;
const LONGEST_PIECE = 64;

/** What has come of an answer, and what is to be asked for next. */
class Writing {
  readonly prompt: Int32Array;
  readonly tokens: number[] = [];
  ending: Ending | undefined;
  readonly #model: ChatModel;
  readonly #stops: readonly string[];
  readonly #most: number;
  readonly #isInPieces: boolean;
  #size = FIRST_PIECE;
  #shown = 0;

  constructor(model: ChatModel, prompt: Int32Array, wishes: AnswerWishes) {
    const { stop = [], seed, temperature, maxTokens, isStreamed = false } = wishes;
    this.#model = model;
    this.prompt = prompt;
    this.#stops = stop;
    const room = model.contextLength === undefined ? undefined : model.contextLength - prompt.length;
    this.#most = Math.min(maxTokens ?? room ?? DEFAULT_MAX_TOKENS, room ?? Number.POSITIVE_INFINITY);
    // Stop strings end an answer here, so pieces save what would be written beyond them.
    const isWanted = isStreamed || stop.length > 0;
    this.#isInPieces = isWanted && (seed === undefined || temperature === 0 || model.seedsGoOn);
  }

  /** Tokens to ask for now. */
  get size(): number {
    const left = this.#most - this.tokens.length;
    return this.#isInPieces ? Math.min(this.#size, left) : left;
  }

  take(sequence: SampledSequence): Piece {
    const before = this.tokens.length;
    const asked = this.size;
    for (const token of sequence.tokens) this.tokens.push(token);
    this.#size = Math.min(LONGEST_PIECE, Math.ceil(this.#size * 1.5));
    const { renderer } = this.#model;
    const isClosed = sequence.stopReason === "stop" && renderer.stopTokens().includes(this.tokens.at(-1) ?? -1);
    const text = renderer.tokenizer.decode(isClosed ? this.tokens.slice(0, -1) : this.tokens);
    const cut = findStop(text, this.#stops, this.#shown);
    if (cut !== undefined) {
      this.ending = { reason: "stop" };
      return this.#piece(text, cut, sequence, this.#tokensTo(text, cut, before) - before);
    }
    if (sequence.stopReason === "stop") this.ending = { reason: "stop" };
    else if (this.tokens.length >= this.#most || sequence.tokens.length < asked) this.ending = { reason: "length" };
    const end = this.ending ? text.length : settledLength(text, this.#stops);
    return this.#piece(text, end, sequence, sequence.tokens.length);
  }

  #piece(text: string, end: number, sequence: SampledSequence, count: number): Piece {
    const from = this.#shown;
    this.#shown = Math.max(from, end);
    return { text: text.slice(from, end), tokens: Array.from({ length: count }, (_, i) => tokenAt(sequence, i)) };
  }

  /** The fewest tokens whose text reaches beyond `cut`, where a stop string begins. It came with those after `before`. */
  #tokensTo(text: string, cut: number, before: number): number {
    const stop = this.#stops.find((candidate) => text.startsWith(candidate, cut)) as string;
    const holds = (count: number) =>
      this.#model.renderer.tokenizer.decode(this.tokens.slice(0, count)).indexOf(stop, cut) === cut;
    let [low, high] = [before + 1, this.tokens.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (holds(middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

function tokenAt({ tokens, logprobs, topk }: SampledSequence, i: number): AnswerToken {
  const top = Array.from({ length: topk?.k ?? 0 }, (_, j) => ({
    id: topk?.tokens[i * topk.k + j] as number,
    logprob: topk?.logprobs[i * topk.k + j] as number,
  })).filter(({ logprob }) => logprob > NO_LOGPROB);
  return { id: tokens[i] as number, logprob: logprobs[i], top };
}

async function ask(
  { sampler, renderer, seedsGoOn }: ChatModel,
  writing: Writing,
  { temperature, topP, topK, seed, topLogprobs = 0 }: AnswerWishes,
  signal: AbortSignal,
): Promise<SampledSequence> {
  const future = await sampler.sample(
    {
      prompt: Int32Array.from([...writing.prompt, ...writing.tokens]),
      params: {
        maxTokens: writing.size,
        temperature,
        stop: renderer.stopTokens(),
        ...(topP === undefined ? {} : { topP }),
        ...(topK === undefined ? {} : { topK }),
        ...(seed === undefined ? {} : { seed }),
        ...(seed !== undefined && seedsGoOn ? { seedPosition: writing.tokens.length } : {}),
      },
      ...(topLogprobs > 0 ? { topkSampleLogprobs: topLogprobs } : {}),
    },
    { signal },
  );
  try {
    const { sequences } = await future.result({ signal });
    return sequences[0] as SampledSequence;
  } catch (error) {
    // Nobody waits for it any more, so nobody waits for this either.
    if (signal.aborted) void future.cancel().catch(() => {});
    throw error;
  }
}
