/** PPO's clipped surrogate: −min(r·A, clip(r, lo, hi)·A) with r = exp(ℓ − q) (Schulman et al. 2017). */
import { CLIP_INPUTS, CLIP_OPTIONS, clippedSurrogate, clipRatio } from "./clip.ts";
import { at, type LossDefinition, POLICY_INPUTS, weighted } from "./loss.ts";

export const ppo: LossDefinition = {
  name: "ppo",
  description: "Policy gradient whose ratio is clipped where that lowers the gain.",
  options: CLIP_OPTIONS,
  inputs: [...POLICY_INPUTS, ...CLIP_INPUTS],
  of: "policy",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "jax", "fsdp", "megatron", "hosted"],
  evaluate: (datum) =>
    weighted(datum, (i) => {
      const { logprobs, advantages } = datum.tensors;
      const ratio = Math.exp(at(datum.outputs, i) - at(logprobs, i));
      return clippedSurrogate(ratio, clipRatio(datum, i, ratio), at(advantages, i));
    }),
};
