/**
 * PPO's clipped value loss: ½·max((v_c − R)², (v − R)²) with v_c = v_old + clip(v − v_old, −c, c) (protocol document,
 * 5.1). Where the clipped side is the greater one it does not move with v, so the derivative is v − R or 0.
 */
import { defineLoss, WEIGHTS } from "./loss.ts";

export const ppoCritic = defineLoss({
  name: "ppo_critic",
  description: "Squared error of a critic's values, clipped near the old ones.",
  text: "½·max((v_c − R)², (v − R)²), v_c = v_old + clip(v − v_old, −value_clip, value_clip)",
  options: [
    {
      name: "value_clip",
      description: "How far a value may move from the old one before its loss is clipped.",
      default: 0.2,
      min: 0,
    },
  ],
  inputs: [{ name: "values", required: true }, { name: "returns", required: true }, WEIGHTS],
  of: "critic",
  isLinear: false,
  runs: ["rl"],
  backends: ["embedded", "fsdp"],
  formula: (m, { output, tensor, option }) => {
    const limit = option("value_clip");
    const error = m.sub(output, tensor("returns"));
    const move = m.sub(output, tensor("values"));
    const bound = m.select(m.less(0, move), limit, m.mul(limit, -1));
    const clippedError = m.sub(m.add(tensor("values"), bound), tensor("returns"));
    // Asked first: within the limit v_c is v, and must not differ by a rounding of old + move.
    const isBeyond = m.less(limit, m.max(move, m.mul(move, -1)));
    const isGreater = m.less(m.mul(error, error), m.mul(clippedError, clippedError));
    const taken = m.select(isBeyond, m.select(isGreater, clippedError, error), error);
    return {
      loss: m.mul(m.mul(taken, taken), 0.5),
      derivative: m.select(isBeyond, m.select(isGreater, 0, error), error),
    };
  },
});
