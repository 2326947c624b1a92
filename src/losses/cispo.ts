/** CISPO: −sg(clip(r, lo, hi))·A·ℓ; the clipped ratio weighs every token and none loses its gradient (MiniMax 2025). */
import { CLIP_INPUTS, CLIP_OPTIONS, clipRatio, ratioOf } from "./clip.ts";
import { defineLoss, POLICY_INPUTS } from "./loss.ts";

export const cispo = defineLoss({
  name: "cispo",
  description: "Log-likelihood weighted by advantage and clipped ratio.",
  text: "−sg(clip(r, low, high))·A·ℓ, r = exp(ℓ − q)",
  options: CLIP_OPTIONS,
  inputs: [...POLICY_INPUTS, ...CLIP_INPUTS],
  of: "policy",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "jax", "fsdp", "megatron", "hosted"],
  formula: (m, datum) => {
    const clipped = clipRatio(m, datum, ratioOf(m, datum));
    const derivative = m.mul(m.mul(clipped, datum.tensor("advantages")), -1);
    return { loss: m.mul(derivative, datum.output), derivative };
  },
});
