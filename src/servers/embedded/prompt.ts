/** What a sample tells about its prompt: log-probabilities of its tokens and of others, gathered while it is read. */
import { chooseToken, logSumExp, topLogprobs } from "./choice.ts";
import { uniform } from "./random.ts";
import type { SampleRequest } from "./sampler.ts";

/** Row-major `[rows, width]`. */
export interface Matrix<A> {
  readonly width: number;
  readonly values: A;
}

export interface PromptWishes {
  readonly logprobs: boolean;
  /** How many likeliest tokens to list for each position; 0 is none. */
  readonly topk: number;
  /** The first position, from 1, whose log-probability and likeliest tokens are wanted. */
  readonly from: number;
  /** Tokens to score at each position after the first; −1 asks for nothing. */
  readonly targets: Matrix<Int32Array> | undefined;
  /** How many tokens to draw at each position after the first; 0 is none. */
  readonly draws: number;
}

export const NO_WISHES: PromptWishes = { logprobs: false, topk: 0, from: 1, targets: undefined, draws: 0 };

export interface PromptScores {
  /** One per prompt token; null where there is none, as for the first. */
  readonly logprobs: readonly (number | null)[] | null;
  readonly topk: readonly (readonly (readonly [number, number])[] | null)[] | null;
  /** `[prompt − 1, K]`, 0 where nothing was asked for. */
  readonly targets: Matrix<Float32Array> | null;
  /** `[prompt − 1, k]` tokens, drawn at the request's temperature and limits, and their log-probabilities. */
  readonly draws: { readonly tokens: Matrix<Int32Array>; readonly logprobs: Matrix<Float32Array> } | null;
}

/** Collects the scores of one prompt. Positions come in order, each once. */
export class PromptReader {
  readonly #request: SampleRequest;
  readonly #logprobs: (number | null)[] = [null];
  readonly #topk: (readonly (readonly [number, number])[] | null)[] = [null];
  readonly #targets: Float32Array;
  readonly #drawn: Int32Array;
  readonly #drawnLogprobs: Float32Array;

  constructor(request: SampleRequest) {
    const { prompt, wishes } = request;
    this.#request = request;
    this.#targets = new Float32Array(wishes.targets?.values.length ?? 0);
    this.#drawn = new Int32Array((prompt.length - 1) * wishes.draws);
    this.#drawnLogprobs = new Float32Array(this.#drawn.length);
  }

  /** Whether the logits after the token before `position` are wanted. */
  wants(position: number): boolean {
    const { logprobs, topk, from, targets, draws } = this.#request.wishes;
    return targets !== undefined || draws > 0 || ((logprobs || topk > 0) && position >= from);
  }

  /** Takes the logits that predict the prompt's token at `position`. */
  read(position: number, logits: Float32Array): void {
    const { prompt, wishes } = this.#request;
    const norm = logSumExp(logits);
    const isScored = position >= wishes.from;
    // Positions that were not wanted have come and gone without a call.
    while (this.#logprobs.length < position) this.#skip();
    this.#logprobs.push(isScored ? (logits[prompt[position] as number] as number) - norm : null);
    this.#topk.push(isScored && wishes.topk > 0 ? topLogprobs(logits, wishes.topk) : null);
    this.#readTargets(position, logits, norm);
    this.#draw(position, logits, norm);
  }

  #skip(): void {
    this.#logprobs.push(null);
    this.#topk.push(null);
  }

  #readTargets(position: number, logits: Float32Array, norm: number): void {
    const { width, values } = this.#request.wishes.targets ?? { width: 0, values: this.#drawn };
    for (let i = (position - 1) * width; i < position * width; i++) {
      const token = values[i] as number;
      if (token >= 0) this.#targets[i] = (logits[token] as number) - norm;
    }
  }

  #draw(position: number, logits: Float32Array, norm: number): void {
    const { seed, policy, wishes } = this.#request;
    for (let i = 0; i < wishes.draws; i++) {
      const token = chooseToken(logits, policy, uniform(seed + i, DRAWS_STREAM, position));
      const at = (position - 1) * wishes.draws + i;
      this.#drawn[at] = token;
      this.#drawnLogprobs[at] = (logits[token] as number) - norm;
    }
  }

  /** Once the whole prompt has been read. */
  scores(): PromptScores {
    const { prompt, wishes } = this.#request;
    while (this.#logprobs.length < prompt.length) this.#skip();
    const { logprobs, topk, targets, draws } = wishes;
    return {
      logprobs: logprobs || topk > 0 ? this.#logprobs : null,
      topk: topk > 0 ? this.#topk : null,
      targets: targets ? { width: targets.width, values: this.#targets } : null,
      draws:
        draws > 0
          ? { tokens: { width: draws, values: this.#drawn }, logprobs: { width: draws, values: this.#drawnLogprobs } }
          : null,
    };
  }
}

/** Samples draw from stream 0; these numbers are others. */
const DRAWS_STREAM = 1;
