/**
 * DPPO: −r·A·M, where M is 0 for tokens whose probability has moved too far in the direction of their advantage: up by
 * more than δ_high where A > 0, down by more than δ_low where A < 0 (protocol document, 5.1). No gradient through M.
 */
import { ratioOf } from "./clip.ts";
import { defineLoss, POLICY_INPUTS } from "./loss.ts";

export const dppo = defineLoss({
  name: "dppo",
  description: "Policy gradient without tokens whose probability has moved too far.",
  text: "−r·A·M, r = exp(ℓ − q); M is 0 where exp(ℓ) − exp(q) > delta_high and A > 0, or < −delta_low and A < 0",
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
  formula: (m, datum) => {
    const { output, tensor, option } = datum;
    const advantages = tensor("advantages");
    const rise = m.sub(m.exp(output), m.exp(tensor("logprobs")));
    const kept = m.mul(m.mul(ratioOf(m, datum), advantages), -1);
    const up = m.select(m.less(option("delta_high"), rise), 0, kept);
    const down = m.select(m.less(option("delta_low"), m.mul(rise, -1)), 0, kept);
    const loss = m.select(m.less(0, advantages), up, down);
    return { loss, derivative: loss };
  },
});
