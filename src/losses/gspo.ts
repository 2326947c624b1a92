/**
 * GSPO: PPO's clipped surrogate of one ratio for the whole sequence, s = exp(min(ℓ − sg(ℓ) + sg(m), 10)) with m the
 * weighted mean of ℓ − q over the datum (Zheng et al. 2025, token variant; protocol document, 5.1). The mean is over
 * positions of `sequence_ratio_mask` ≠ 0 where a datum has it (5.2), else Σ w·(ℓ − q) / max(Σ w, 1).
 */
import { CLIP_INPUTS, CLIP_OPTIONS, clippedSurrogate, clipRatio } from "./clip.ts";
import { at, type LossArguments, type LossDefinition, POLICY_INPUTS, weighted } from "./loss.ts";

const MOST_LOG_RATIO = 10;

export const gspo: LossDefinition = {
  name: "gspo",
  description: "PPO with one ratio for the whole sequence.",
  options: CLIP_OPTIONS,
  inputs: [...POLICY_INPUTS, ...CLIP_INPUTS, { name: "sequence_ratio_mask", required: false }],
  of: "policy",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "fsdp", "megatron", "hosted"],
  evaluate: (datum) => {
    const mean = sequenceLogRatio(datum);
    const ratio = Math.exp(Math.min(mean, MOST_LOG_RATIO));
    return weighted(datum, (i) => {
      const [loss, derivative] = clippedSurrogate(ratio, clipRatio(datum, i, ratio), at(datum.tensors.advantages, i));
      // At the bound of the exponent the ratio does not move any more.
      return [loss, mean > MOST_LOG_RATIO ? 0 : derivative];
    });
  },
};

/** m, over positions that count. */
function sequenceLogRatio({ outputs, tensors }: LossArguments): number {
  const mask = tensors.sequence_ratio_mask;
  let sum = 0;
  let total = 0;
  for (let i = 0; i < outputs.length; i++) {
    const weight = mask ? Number(mask[i] !== 0) : (tensors.weights?.[i] ?? 1);
    if (weight === 0) continue;
    sum += weight * (at(outputs, i) - at(tensors.logprobs, i));
    total += weight;
  }
  return sum / Math.max(total, 1);
}
