/**
 * The losses of forward_backward, one entry each: which tensors of a datum it reads, which options it knows, and its
 * value at every position. The reduction is the same for all: the sum over positions and datums, as hosted Tinker
 * servers have it (protocol document, 5.2).
 */
import type { ArrayTree, Jax, JaxArray } from "./jax.ts";

export interface LossInput {
  /** What stands in where a datum has no such tensor; `undefined` makes it required. */
  readonly fallback: number | undefined;
}

export interface Loss {
  /** Tensors besides `target_tokens`, each one value per position. */
  readonly inputs: Readonly<Record<string, LossInput>>;
  /** Options and their defaults. */
  readonly options: Readonly<Record<string, number>>;
  /**
   * The loss at each position `[batch, length]`, from the targets' log-probabilities under the model being trained and
   * the tensors named by `inputs`, all `[batch, length]`, and the options as scalars. Consumes its arrays.
   */
  readonly elementwise: (jax: Jax, logprobs: JaxArray, tensors: ArrayTree, options: ArrayTree) => JaxArray;
}

export const LOSSES: Readonly<Record<string, Loss>> = {
  cross_entropy: {
    inputs: { weights: { fallback: 1 } },
    options: {},
    elementwise: (_jax, logprobs, { weights }) => logprobs.neg().mul(weights as JaxArray),
  },
};

export type LossName = string;

export function findLoss(name: string): Loss | undefined {
  return Object.hasOwn(LOSSES, name) ? LOSSES[name] : undefined;
}
