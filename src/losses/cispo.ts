/** CISPO: −sg(clip(r, lo, hi))·A·ℓ; the clipped ratio weighs every token and none loses its gradient (MiniMax 2025). */
import { CLIP_INPUTS, CLIP_OPTIONS, clipRatio } from "./clip.ts";
import { at, type LossDefinition, POLICY_INPUTS, weighted } from "./loss.ts";

export const cispo: LossDefinition = {
  name: "cispo",
  description: "Log-likelihood weighted by advantage and clipped ratio.",
  options: CLIP_OPTIONS,
  inputs: [...POLICY_INPUTS, ...CLIP_INPUTS],
  of: "policy",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "jax", "fsdp", "megatron", "hosted"],
  evaluate: (datum) =>
    weighted(datum, (i) => {
      const { logprobs, advantages } = datum.tensors;
      const logprob = at(datum.outputs, i);
      const factor = clipRatio(datum, i, Math.exp(logprob - at(logprobs, i))) * at(advantages, i);
      return [-factor * logprob, -factor];
    }),
};
