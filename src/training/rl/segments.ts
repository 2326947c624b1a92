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

/** Tokens of turns that extend each other, with room for the whole of the last. */
class SegmentBuilder {
  #tokens = new Int32Array(64);
  #sampled = new Float32Array(64);
  #logprobs = new Float32Array(64);
  #length = 0;

  isExtendedBy(prompt: Int32Array): boolean {
    if (prompt.length < this.#length) return false;
    for (let at = 0; at < this.#length; at++) if (this.#tokens[at] !== prompt[at]) return false;
    return true;
  }

  add({ prompt, tokens, logprobs }: Turn): void {
    const end = prompt.length + tokens.length;
    this.#grow(end);
    this.#tokens.set(prompt.subarray(this.#length), this.#length);
    this.#tokens.set(tokens, prompt.length);
    this.#sampled.fill(1, prompt.length, end);
    this.#logprobs.set(logprobs, prompt.length);
    this.#length = end;
  }

  build(): Segment {
    return {
      tokens: this.#tokens.slice(0, this.#length),
      sampled: this.#sampled.slice(0, this.#length),
      logprobs: this.#logprobs.slice(0, this.#length),
    };
  }

  #grow(length: number): void {
    if (length <= this.#tokens.length) return;
    const room = Math.max(length, this.#tokens.length * 2);
    const tokens = new Int32Array(room);
    tokens.set(this.#tokens);
    this.#tokens = tokens;
    for (const name of ["sampled", "logprobs"] as const) {
      const values = new Float32Array(room);
      values.set(name === "sampled" ? this.#sampled : this.#logprobs);
      if (name === "sampled") this.#sampled = values;
      else this.#logprobs = values;
    }
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
