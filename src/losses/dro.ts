/** DRO: −(ℓ·A − ½·β·(ℓ − q)²) (Richemond et al. 2024). */
import { at, type LossDefinition, POLICY_INPUTS, weighted } from "./loss.ts";

export const dro: LossDefinition = {
  name: "dro",
  description: "Log-likelihood weighted by advantage, held near the old policy by a squared log-ratio.",
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
  evaluate: (datum) =>
    weighted(datum, (i) => {
      const { logprobs, advantages } = datum.tensors;
      const beta = datum.options.beta as number;
      const logprob = at(datum.outputs, i);
      const drift = logprob - at(logprobs, i);
      return [-(logprob * at(advantages, i) - 0.5 * beta * drift * drift), -(at(advantages, i) - beta * drift)];
    }),
};
