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
    open ??= new SegmentBuilder(turn.prompt.length + turn.tokens.length);
    open.add(turn);
  }
  if (open) segments.push(open.build());
  return segments;
}

/** Tokens of turns that extend each other. Most rollouts have one turn, for which the first room is just enough. */
class SegmentBuilder {
  #room: Segment;
  #length = 0;

  constructor(room: number) {
    this.#room = emptySegment(room);
  }

  isExtendedBy(prompt: Int32Array): boolean {
    if (prompt.length < this.#length) return false;
    for (let at = 0; at < this.#length; at++) if (this.#room.tokens[at] !== prompt[at]) return false;
    return true;
  }

  add({ prompt, tokens, logprobs }: Turn): void {
    const end = prompt.length + tokens.length;
    this.#grow(end);
    const room = this.#room;
    room.tokens.set(prompt.subarray(this.#length), this.#length);
    room.tokens.set(tokens, prompt.length);
    room.sampled.fill(1, prompt.length, end);
    room.logprobs.set(logprobs, prompt.length);
    this.#length = end;
  }

  build(): Segment {
    const { tokens, sampled, logprobs } = this.#room;
    return {
      tokens: tokens.subarray(0, this.#length),
      sampled: sampled.subarray(0, this.#length),
      logprobs: logprobs.subarray(0, this.#length),
    };
  }

  #grow(length: number): void {
    const old = this.#room;
    if (length <= old.tokens.length) return;
    const room = emptySegment(Math.max(length, old.tokens.length * 2));
    room.tokens.set(old.tokens);
    room.sampled.set(old.sampled);
    room.logprobs.set(old.logprobs);
    this.#room = room;
  }
}

/** Its three arrays lie in one buffer, since a buffer costs more than the few hundred bytes of most of them. */
function emptySegment(length: number): Segment {
  const buffer = new ArrayBuffer(12 * length);
  return {
    tokens: new Int32Array(buffer, 0, length),
    sampled: new Float32Array(buffer, 4 * length, length),
    logprobs: new Float32Array(buffer, 8 * length, length),
  };
}

/** The tensors of one datum, [N] each, N one less than the segment: position i predicts token i + 1. */
export interface PolicyTensors {
  readonly input: Int32Array;
  readonly targets: Int32Array;
  readonly weights: Float32Array;
  readonly logprobs: Float32Array;
  readonly advantages: Float32Array;
}

/** Shifts a segment by one and puts the rollout's advantage at every sampled token. All but the advantages are views of the segment. */
export function policyTensors({ tokens, sampled, logprobs }: Segment, advantage: number): PolicyTensors {
  const weights = sampled.subarray(1);
  const advantages = new Float32Array(weights.length);
  for (let i = 0; i < advantages.length; i++) advantages[i] = (weights[i] as number) * advantage;
  return {
    input: tokens.subarray(0, -1),
    targets: tokens.subarray(1),
    weights,
    logprobs: logprobs.subarray(1),
    advantages,
  };
}
