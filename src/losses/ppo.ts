/** PPO's clipped surrogate: −min(r·A, clip(r, lo, hi)·A) with r = exp(ℓ − q) (Schulman et al. 2017). */
import { CLIP_INPUTS, CLIP_OPTIONS, clippedSurrogate, ratioOf } from "./clip.ts";
import { defineLoss, POLICY_INPUTS } from "./loss.ts";

export const ppo = defineLoss({
  name: "ppo",
  description: "Policy gradient whose ratio is clipped where that lowers the gain.",
  text: "−min(r·A, clip(r, low, high)·A), r = exp(ℓ − q)",
  options: CLIP_OPTIONS,
  inputs: [...POLICY_INPUTS, ...CLIP_INPUTS],
  of: "policy",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "jax", "fsdp", "megatron", "hosted"],
  formula: (m, datum) => clippedSurrogate(m, datum, ratioOf(m, datum)),
});
