/**
 * From what was said to what is trained on. A rollout is a list of turns: what the environment put in (tokens that it chose) and
 * what the policy sampled (tokens with their log-probabilities). Tokens are never decoded and tokenised again. While each
 * turn's prompt extends the tokens so far, all turns share one datum; where it does not, a new datum begins.
 */

/** One answer of the policy and all that stood before it. */
export interface Turn {
  /** [P] everything the policy saw. */
  readonly prompt: Int32Array;
  /** [T] what it sampled. */
  readonly tokens: Int32Array;
  /** [T] log-probabilities in nats under the policy that sampled. */
  readonly logprobs: Float32Array;
}

/** Tokens with, for each, whether the policy sampled it and with which log-probability. */
export interface Segment {
  /** [L] */
  readonly tokens: Int32Array;
  /** [L] 1 where the policy sampled the token, else 0. */
  readonly sampled: Float32Array;
  /** [L] 0 where it did not. */
  readonly logprobs: Float32Array;
}

/** Throws RangeError where a turn's tokens and log-probabilities differ in number. */
export function segmentsOf(turns: readonly Turn[]): readonly Segment[] {
  const segments: Segment[] = [];
  let open: SegmentBuilder | undefined;
  for (const turn of turns) {
    if (turn.tokens.length !== turn.logprobs.length) {
      throw new RangeError(`${turn.tokens.length} tokens with ${turn.logprobs.length} log-probabilities`);
    }
    if (open && !open.isExtendedBy(turn.prompt)) {
      segments.push(open.build());
      open = undefined;
    }
    open ??= new SegmentBuilder();
    open.add(turn);
  }
  if (open) segments.push(open.build());
  return segments;
}

class SegmentBuilder {
  readonly #tokens: number[] = [];
  readonly #sampled: number[] = [];
  readonly #logprobs: number[] = [];

  isExtendedBy(prompt: Int32Array): boolean {
    if (prompt.length < this.#tokens.length) return false;
    return this.#tokens.every((token, at) => token === prompt[at]);
  }

  add({ prompt, tokens, logprobs }: Turn): void {
    for (let at = this.#tokens.length; at < prompt.length; at++) this.#push(prompt[at] as number, 0, 0);
    for (const [at, token] of tokens.entries()) this.#push(token, 1, logprobs[at] as number);
  }

  build(): Segment {
    return {
      tokens: Int32Array.from(this.#tokens),
      sampled: Float32Array.from(this.#sampled),
      logprobs: Float32Array.from(this.#logprobs),
    };
  }

  #push(token: number, sampled: number, logprob: number): void {
    this.#tokens.push(token);
    this.#sampled.push(sampled);
    this.#logprobs.push(logprob);
  }
}

/** The tensors of one datum, [N] each, N one less than the segment: position i predicts token i + 1. */
export interface PolicyTensors {
  readonly input: Int32Array;
  readonly targets: Int32Array;
  readonly weights: Float32Array;
  readonly logprobs: Float32Array;
  readonly advantages: Float32Array;
}

/** Shifts a segment by one and puts the rollout's advantage at every sampled token. */
export function policyTensors({ tokens, sampled, logprobs }: Segment, advantage: number): PolicyTensors {
  const weights = sampled.slice(1);
  return {
    input: tokens.slice(0, -1),
    targets: tokens.slice(1),
    weights,
    logprobs: logprobs.slice(1),
    advantages: weights.map((weight) => weight * advantage),
  };
}
