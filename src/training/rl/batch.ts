/** Scored rollouts as data to send: shifted, weighted so that the plain sum of the loss is the mean that `normalize` asks for. */
import type { RlSettings } from "../../run-record.ts";
import type { Datum } from "../../tinker/data.ts";
import type { Scored } from "./groups.ts";
import type { Rollout } from "./rollout.ts";
import { policyTensors, type Segment, segmentsOf } from "./segments.ts";

/** What the loss is a mean over. */
export interface Divisor {
  readonly normalize: RlSettings["normalize"];
  /** `sequence`: answers of the substep, those left out too. `token`: sampled tokens that are trained on. */
  readonly count: number;
}

export interface PenaltySettings {
  /** Weight of the KL penalty. */
  readonly weight: number;
  /** Mean of log q − log p(reference) over all sampled tokens of the step. */
  readonly mean: number;
}

/** All datums of some rollouts, in order; their arrays are their own. Rollouts whose weight is nothing at all have none. */
export function rlData(scored: readonly Scored[], divisor: Divisor, penalty?: PenaltySettings): readonly Datum[] {
  return scored.flatMap(({ rollout, advantage }) => {
    const segments = segmentsOf(rollout.turns);
    const sampled = segments.reduce((sum, segment) => sum + sampledTokens(segment), 0);
    const weight = 1 / (divisor.normalize === "token" ? divisor.count : sampled * divisor.count);
    return segments.map((segment, i) => datumOf(segment, advantage, weight, penalty, rollout.reference?.[i]));
  });
}

/** Tokens that the policy sampled. */
function sampledTokens({ sampled }: Segment): number {
  let count = 0;
  for (const mark of sampled) count += mark;
  return count;
}

/** Tokens that the policy sampled in a rollout. */
export function answerTokens({ turns }: Rollout): number {
  return turns.reduce((sum, { tokens }) => sum + tokens.length, 0);
}

function datumOf(
  segment: Segment,
  advantage: number,
  weight: number,
  penalty: PenaltySettings | undefined,
  reference: Float32Array | undefined,
): Datum {
  const { input, targets, weights, logprobs, advantages } = policyTensors(segment, advantage);
  if (penalty && reference) addPenalty(advantages, weights, logprobs, reference.subarray(1), penalty);
  // In place: they are a view of the segment, which nobody reads any more.
  for (let at = 0; at < weights.length; at++) weights[at] = (weights[at] as number) * weight;
  return { input, lossInputs: { target_tokens: targets, weights, logprobs, advantages } };
}

/**
 * Subtracts the penalty from the advantages in place: β·((log q − log p_ref) − mean), so that its mean over the step's sampled
 * tokens is 0 and only moves credit between tokens (as the Tinker cookbook's `incorporate_kl_penalty`).
 */
function addPenalty(
  advantages: Float32Array,
  mask: Float32Array,
  logprobs: Float32Array,
  reference: Float32Array,
  { weight, mean }: PenaltySettings,
): void {
  for (let at = 0; at < advantages.length; at++) {
    if (mask[at] === 0) continue;
    const drift = (logprobs[at] as number) - (reference[at] as number);
    advantages[at] = (advantages[at] as number) - weight * (drift - mean);
  }
}

/** Mean of log q − log p(reference) over the sampled tokens of some rollouts, in nats. */
export function referenceDrift(rollouts: readonly Rollout[]): number {
  let sum = 0;
  let count = 0;
  for (const { turns, reference } of rollouts) {
    for (const [i, { sampled, logprobs }] of segmentsOf(turns).entries()) {
      const theirs = reference?.[i];
      if (!theirs) continue;
      for (let at = 0; at < sampled.length; at++) {
        if (sampled[at] === 0) continue;
        sum += (logprobs[at] as number) - (theirs[at] as number);
        count += 1;
      }
    }
  }
  return count === 0 ? 0 : sum / count;
}
