/** Cross entropy: Σ −w·log p(target), the sum over positions and datums. What it averages over is in the weights. */
import type { LossDefinition } from "./loss.ts";

export const crossEntropy: LossDefinition = {
  name: "cross_entropy",
  description: "Negative log-likelihood of the trained tokens.",
  options: [],
  inputs: ["weights"],
  runs: ["sl"],
  backends: ["embedded", "jax", "fsdp", "megatron", "hosted"],
};

/**
 * The loss of one datum in double precision, from its weights [N] and the log-probabilities [N] in nats that a server
 * returned. Positions of weight 0 count as exactly 0, whatever their log-probability.
 */
export function crossEntropyLoss(weights: Float32Array, logprobs: Float32Array): number {
  let sum = 0;
  for (let i = 0; i < weights.length; i += 1) {
    const weight = weights[i] as number;
    if (weight !== 0) sum -= weight * (logprobs[i] as number);
  }
  return sum;
}
