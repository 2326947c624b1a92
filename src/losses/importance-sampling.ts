/** Importance sampling: −r·A with r = exp(ℓ − q), q the log-probability under the policy that sampled. */
import { at, type LossDefinition, POLICY_INPUTS, weighted } from "./loss.ts";

export const importanceSampling: LossDefinition = {
  name: "importance_sampling",
  description: "Policy gradient corrected by the ratio of new to old probability.",
  options: [],
  inputs: POLICY_INPUTS,
  of: "policy",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "jax", "fsdp", "megatron", "hosted"],
  evaluate: (datum) =>
    weighted(datum, (i) => {
      const { logprobs, advantages } = datum.tensors;
      const gain = Math.exp(at(datum.outputs, i) - at(logprobs, i)) * at(advantages, i);
      return [-gain, -gain];
    }),
};
