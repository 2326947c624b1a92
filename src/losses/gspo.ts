/**
 * GSPO: PPO's clipped surrogate of one ratio for the whole sequence, s = exp(min(ℓ − sg(ℓ) + sg(m), 10)) with m the
 * weighted mean of ℓ − q over the datum (Zheng et al. 2025, token variant; protocol document, 5.1). The mean is over
 * positions of `sequence_ratio_mask` ≠ 0 where a datum has it (5.2), else Σ w·(ℓ − q) / max(Σ w, 1).
 */
import { CLIP_INPUTS, CLIP_OPTIONS, clippedSurrogate } from "./clip.ts";
import type { Arithmetic, FormulaDatum } from "./formula.ts";
import { defineLoss, type LossInput, POLICY_INPUTS } from "./loss.ts";

const MOST_LOG_RATIO = 10;

/** How much each position counts in the mean. */
const RATIO_MASK: LossInput = {
  name: "sequence_ratio_mask",
  required: false,
  from: ({ tensors: { sequence_ratio_mask: mask, weights } }) =>
    mask ? Float32Array.from(mask, (value) => Number(value !== 0)) : (weights ?? 1),
};

export const gspo = defineLoss({
  name: "gspo",
  description: "PPO with one ratio for the whole sequence.",
  text: "−min(s·A, clip(s, low, high)·A), s = exp(mean of ℓ − q over the answer), with the gradient of each token’s own ℓ",
  options: CLIP_OPTIONS,
  inputs: [...POLICY_INPUTS, ...CLIP_INPUTS, RATIO_MASK],
  of: "policy",
  isLinear: false,
  perSequence: true,
  runs: ["rl"],
  backends: ["embedded", "fsdp", "megatron", "hosted"],
  formula: (m, datum) => {
    const mean = sequenceLogRatio(m, datum);
    const { loss, derivative } = clippedSurrogate(m, datum, m.exp(m.min(mean, MOST_LOG_RATIO)));
    // At the bound of the exponent the ratio does not move any more.
    return { loss, derivative: m.select(m.less(MOST_LOG_RATIO, mean), 0, derivative) };
  },
});

/** m, over positions that count. */
function sequenceLogRatio<V>(m: Arithmetic<V>, { output, tensor }: FormulaDatum<V>): V {
  const share = tensor(RATIO_MASK.name);
  const drift = m.mul(share, m.sub(output, tensor("logprobs")));
  return m.div(m.sum(m.select(m.equal(share, 0), 0, drift)), m.max(m.sum(share), 1));
}
