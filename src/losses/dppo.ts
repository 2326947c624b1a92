/**
 * DPPO: −r·A·M, where M is 0 for tokens whose probability has moved too far in the direction of their advantage: up by
 * more than δ_high where A > 0, down by more than δ_low where A < 0 (protocol document, 5.1). No gradient through M.
 */
import { at, type LossDefinition, POLICY_INPUTS, weighted } from "./loss.ts";

export const dppo: LossDefinition = {
  name: "dppo",
  description: "Policy gradient without tokens whose probability has moved too far.",
  options: [
    {
      name: "delta_low",
      description: "Tokens whose probability fell by more than this are masked where the advantage is negative.",
      default: 0.2,
      min: 0,
    },
    {
      name: "delta_high",
      description: "Tokens whose probability rose by more than this are masked where the advantage is positive.",
      default: 0.2,
      min: 0,
    },
  ],
  inputs: POLICY_INPUTS,
  of: "policy",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "fsdp", "megatron"],
  evaluate: (datum) =>
    weighted(datum, (i) => {
      const logprob = at(datum.outputs, i);
      const old = at(datum.tensors.logprobs, i);
      const advantage = at(datum.tensors.advantages, i);
      const rise = Math.exp(logprob) - Math.exp(old);
      const { delta_low, delta_high } = datum.options;
      const isMasked =
        (advantage > 0 && rise > (delta_high as number)) || (advantage < 0 && -rise > (delta_low as number));
      if (isMasked) return [0, 0];
      const gain = Math.exp(logprob - old) * advantage;
      return [-gain, -gain];
    }),
};
