/** Cross entropy: Σ −w·ℓ, the sum over positions and datums. What it averages over is in the weights. */
import { defineLoss, WEIGHTS } from "./loss.ts";

export const crossEntropy = defineLoss({
  name: "cross_entropy",
  description: "Negative log-likelihood of the trained tokens.",
  text: "−ℓ",
  options: [],
  inputs: [WEIGHTS],
  of: "policy",
  isLinear: true,
  runs: ["sl"],
  backends: ["embedded", "jax", "fsdp", "megatron", "hosted"],
  formula: (m, { output }) => ({ loss: m.mul(output, -1), derivative: -1 }),
});

/**
 * The loss of one datum in double precision, from its weights [N] and the log-probabilities [N] in nats that a server
 * returned. Positions of weight 0 count as exactly 0, whatever their log-probability.
 */
export function crossEntropyLoss(weights: Float32Array, logprobs: Float32Array): number {
  return crossEntropy
    .evaluate({ outputs: logprobs, tensors: { weights }, options: {} })
    .losses.reduce((a, b) => a + b, 0);
}
