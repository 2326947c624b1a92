/**
 * PPO's clipped value loss: ½·max((v_c − R)², (v − R)²) with v_c = v_old + clip(v − v_old, −c, c) (protocol document,
 * 5.1). Where the clipped side is the greater one it does not move with v, so the derivative is v − R or 0.
 */
import { at, type LossDefinition, WEIGHTS, weighted } from "./loss.ts";

export const ppoCritic: LossDefinition = {
  name: "ppo_critic",
  description: "Squared error of a critic's values, clipped near the old ones.",
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
  evaluate: (datum) =>
    weighted(datum, (i) => {
      const limit = datum.options.value_clip as number;
      const value = at(datum.outputs, i);
      const old = at(datum.tensors.values, i);
      const error = value - at(datum.tensors.returns, i);
      const move = value - old;
      // Asked first: within the limit v_c is v, and must not differ by a rounding of old + move.
      if (Math.abs(move) > limit) {
        const clippedError = old + Math.sign(move) * limit - at(datum.tensors.returns, i);
        if (clippedError * clippedError > error * error) return [0.5 * clippedError * clippedError, 0];
      }
      return [0.5 * error * error, error];
    }),
};
