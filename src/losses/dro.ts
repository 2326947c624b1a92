/** DRO: −(ℓ·A − ½·β·(ℓ − q)²) (Richemond et al. 2024). */
import { defineLoss, POLICY_INPUTS } from "./loss.ts";

export const dro = defineLoss({
  name: "dro",
  description: "Log-likelihood weighted by advantage, held near the old policy by a squared log-ratio.",
  text: "−(ℓ·A − ½·beta·(ℓ − q)²)",
  options: [
    {
      name: "beta",
      description: "Weight of the squared log-ratio that holds the policy near the one that sampled.",
      min: 0,
    },
  ],
  inputs: POLICY_INPUTS,
  of: "policy",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "hosted"],
  formula: (m, { output, tensor, option }) => {
    const drift = m.sub(output, tensor("logprobs"));
    const pull = m.mul(option("beta"), drift);
    return {
      loss: m.sub(m.mul(m.mul(pull, drift), 0.5), m.mul(output, tensor("advantages"))),
      derivative: m.sub(pull, tensor("advantages")),
    };
  },
});
