/** The choices of a chat completion as they come: deltas of text, log-probabilities, calls, and how each ends. */
import { randomBytes } from "node:crypto";
import {
  type AnswerToken,
  type AnswerWishes,
  answer,
  type ChatModel,
  type Piece,
  promptOf,
} from "../../chat/answer.ts";
import { CallListener } from "../../chat/calls.ts";
import type { ToolCall } from "../../tokens/calls.ts";
import type { Tokenizer } from "../../tokens/tokenizer.ts";
import { refuse } from "./fault.ts";
import type { ChatRequest } from "./request.ts";

export interface TokenLogprob {
  readonly token: string;
  readonly logprob: number;
  readonly bytes: readonly number[];
}

export interface ContentLogprob extends TokenLogprob {
  readonly top_logprobs: readonly TokenLogprob[];
}

export interface CallDelta {
  readonly index: number;
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

export type ChoiceEvent =
  | {
      readonly type: "delta";
      readonly index: number;
      readonly text: string;
      readonly calls: readonly CallDelta[];
      readonly logprobs: readonly ContentLogprob[];
    }
  | {
      readonly type: "end";
      readonly index: number;
      readonly reason: "stop" | "length" | "tool_calls";
      readonly tokens: number;
    };

export interface Asked {
  readonly promptTokens: number;
  /** Of all choices, as they come. */
  events(signal: AbortSignal): AsyncGenerator<ChoiceEvent>;
}

/** Fails with OpenAiFault or RlcliError where the request cannot be asked. */
export function ask(model: ChatModel, request: ChatRequest): Asked {
  const { conversation, wishes, count } = request;
  const prompt = promptOf(model, conversation, wishes);
  const hasTools = conversation.tools !== undefined;
  if (hasTools) requireTools(model, request, prompt);
  const isThinking = model.renderer.tokenizer.decode(prompt.slice(-THINK_TOKENS)).trimEnd().endsWith("<think>");
  const listenerOf = () => (hasTools ? new CallListener(isThinking) : undefined);
  const choices = Array.from({ length: count }, (_, index) => new Choice(model, request, index, listenerOf()));
  const seedOf = (i: number): AnswerWishes =>
    wishes.seed === undefined ? wishes : { ...wishes, seed: wishes.seed + i };
  return {
    promptTokens: prompt.length,
    async *events(signal) {
      // Where one of them fails, or nobody listens any more, the others end too.
      const over = new AbortController();
      const both = AbortSignal.any([signal, over.signal]);
      try {
        yield* merged(choices.map((choice, i) => choice.events(prompt, seedOf(i), both)));
      } finally {
        over.abort();
      }
    },
  };
}

/** Enough to hold how a template begins the thinking. */
const THINK_TOKENS = 16;

/** A template that does not write tools down would let the model answer as if there were none. */
function requireTools(model: ChatModel, { conversation, wishes }: ChatRequest, prompt: Int32Array): void {
  const { tools: _, ...without } = conversation;
  const plain = promptOf(model, without, wishes);
  if (plain.length === prompt.length && plain.every((token, i) => token === prompt[i]))
    refuse(
      "tools",
      "The chat template of this model has no place for tools: it would not be told of them.",
      "unsupported_value",
    );
}

class Choice {
  readonly #model: ChatModel;
  readonly #request: ChatRequest;
  readonly #index: number;
  readonly #listener: CallListener | undefined;

  constructor(model: ChatModel, request: ChatRequest, index: number, listener: CallListener | undefined) {
    this.#model = model;
    this.#request = request;
    this.#index = index;
    this.#listener = listener;
  }

  async *events(prompt: Int32Array, wishes: AnswerWishes, signal: AbortSignal): AsyncGenerator<ChoiceEvent> {
    const pieces = answer(this.#model, prompt, wishes, signal);
    let tokens = 0;
    for (;;) {
      const { value, done } = await pieces.next();
      if (done) {
        const heard = this.#listener?.end() ?? { text: "", calls: [] };
        const calls = this.#request.callsInParallel ? heard.calls : heard.calls.slice(0, 1);
        if (heard.text !== "" || calls.length > 0) yield this.#delta(heard.text, [], calls);
        const isCall = calls.length > 0 && value.reason === "stop";
        yield { type: "end", index: this.#index, reason: isCall ? "tool_calls" : value.reason, tokens };
        return;
      }
      tokens += value.tokens.length;
      yield this.#delta(this.#listener ? this.#listener.push(value.text) : value.text, this.#logprobs(value), []);
    }
  }

  #delta(text: string, logprobs: readonly ContentLogprob[], calls: readonly ToolCall[]): ChoiceEvent {
    return { type: "delta", index: this.#index, text, logprobs, calls: calls.map(callDelta) };
  }

  /** The token that ends a turn is no content. */
  #logprobs({ tokens }: Piece): readonly ContentLogprob[] {
    const { topLogprobs } = this.#request;
    if (topLogprobs === undefined) return [];
    const { renderer } = this.#model;
    const ends = renderer.stopTokens();
    return tokens
      .filter(({ id }) => !ends.includes(id))
      .map((token) => contentLogprob(token, topLogprobs, renderer.tokenizer));
  }
}

function contentLogprob({ id, logprob, top }: AnswerToken, wanted: number, tokenizer: Tokenizer): ContentLogprob {
  if (logprob === undefined || Number.isNaN(logprob))
    refuse("logprobs", "The server behind this endpoint gives no log-probabilities.", "unsupported_value");
  if (wanted > 0 && top.length === 0)
    refuse("top_logprobs", "The server behind this endpoint gives no likeliest tokens.", "unsupported_value");
  return {
    ...tokenLogprob(id, logprob, tokenizer),
    top_logprobs: top.slice(0, wanted).map((other) => tokenLogprob(other.id, other.logprob, tokenizer)),
  };
}

const tokenLogprob = (id: number, logprob: number, tokenizer: Tokenizer): TokenLogprob => ({
  token: tokenizer.decode([id]),
  logprob,
  bytes: [...tokenizer.bytesOf(id)],
});

const callDelta = ({ name, arguments: given }: ToolCall, index: number): CallDelta => ({
  index,
  id: `call_${randomBytes(12).toString("hex")}`,
  type: "function",
  function: { name, arguments: JSON.stringify(given) },
});

/** What several sources give, in the order in which it comes. The first fault ends all. */
async function* merged<T>(sources: readonly AsyncGenerator<T>[]): AsyncGenerator<T> {
  const next = async (source: AsyncGenerator<T>) => ({ source, result: await source.next() });
  const open = new Map(sources.map((source) => [source, next(source)]));
  // The fault that is thrown is the first; the others' must not count as unhandled.
  for (const waiting of open.values()) waiting.catch(() => {});
  while (open.size > 0) {
    const { source, result } = await Promise.race(open.values());
    if (result.done) {
      open.delete(source);
      continue;
    }
    yield result.value;
    const waiting = next(source);
    waiting.catch(() => {});
    open.set(source, waiting);
  }
}
