/** Importance sampling: −r·A with r = exp(ℓ − q), q the log-probability under the policy that sampled. */
import { ratioOf } from "./clip.ts";
import { defineLoss, POLICY_INPUTS } from "./loss.ts";

export const importanceSampling = defineLoss({
  name: "importance_sampling",
  description: "Policy gradient corrected by the ratio of new to old probability.",
  text: "−r·A, r = exp(ℓ − q)",
  options: [],
  inputs: POLICY_INPUTS,
  of: "policy",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "jax", "fsdp", "megatron", "hosted"],
  formula: (m, datum) => {
    const loss = m.mul(m.mul(ratioOf(m, datum), datum.tensor("advantages")), -1);
    return { loss, derivative: loss };
  },
});
