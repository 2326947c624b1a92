/**
 * What a loss is to the rest of the program: its options, its inputs, where it exists, and its formula.
 *
 * Every loss is a sum over the positions of datums, and reaches the model through one number a position only: the
 * log-probability of the target or, for a critic, the value. So a formula gives two numbers a position, its loss and
 * the loss's derivative by that number, and a server or a client needs nothing else to train with it: the gradient
 * is that of Σ derivative · number with the derivatives held fixed. All in double precision.
 */

export interface LossOption {
  readonly name: string;
  readonly description: string;
  /** The value every backend is given where the spec leaves the option out; undefined: "as the server has it". */
  readonly default?: number;
  /** Inclusive. */
  readonly min?: number;
  readonly max?: number;
}

/** A tensor of a datum beside `target_tokens`, [N]. */
export interface LossInput {
  readonly name: string;
  /** Whether a datum without it is refused. */
  readonly required: boolean;
}

/** One datum as a formula sees it. */
export interface LossArguments {
  /** [N] log p(target) in nats under the model being trained; for a critic [N] its values. */
  readonly outputs: ArrayLike<number>;
  /** [N] each, by name; absent where the datum has none. */
  readonly tensors: Readonly<Record<string, ArrayLike<number> | undefined>>;
  /** Every option of the loss. */
  readonly options: Readonly<Record<string, number>>;
}

/** The loss at each position and its derivative by the output there, [N] each. */
export interface LossTerms {
  readonly losses: Float64Array;
  readonly derivatives: Float64Array;
}

export type LossBackend = "embedded" | "jax" | "fsdp" | "megatron" | "hosted";

export interface LossDefinition {
  /** As in the spec and on the wire. */
  readonly name: string;
  readonly description: string;
  readonly options: readonly LossOption[];
  readonly inputs: readonly LossInput[];
  /** What the model gives a position: log-probabilities, or a critic's values. */
  readonly of: "policy" | "critic";
  /** Whether the derivatives are the same whatever the outputs are, so that no forward pass has to come first. */
  readonly isLinear: boolean;
  /** Which kind of run may use it. */
  readonly runs: readonly ("sl" | "rl")[];
  /** Backends that compute it themselves. */
  readonly backends: readonly LossBackend[];
  readonly evaluate: (datum: LossArguments) => LossTerms;
}

/** `weights` is the mask and the weight of each position, in every loss: 1 where a datum has none. */
export const WEIGHTS: LossInput = { name: "weights", required: false };

/** What the losses of reinforcement learning read: of the policy that sampled, and of the reward. */
export const POLICY_INPUTS: readonly LossInput[] = [
  { name: "logprobs", required: true },
  { name: "advantages", required: true },
  WEIGHTS,
];

/** Loss and derivative of one position, before its weight. */
export type Term = readonly [loss: number, derivative: number];

/**
 * Applies `termAt` at every position and multiplies by its weight. Where the weight is 0 both are exactly 0, whatever
 * else stands there.
 */
export function weighted({ outputs, tensors }: LossArguments, termAt: (position: number) => Term): LossTerms {
  const losses = new Float64Array(outputs.length);
  const derivatives = new Float64Array(outputs.length);
  for (let i = 0; i < outputs.length; i++) {
    const weight = tensors.weights?.[i] ?? 1;
    if (weight === 0) continue;
    const [loss, derivative] = termAt(i);
    losses[i] = weight * loss;
    derivatives[i] = weight * derivative;
  }
  return { losses, derivatives };
}

/** A position's value in a tensor that the datum has. */
export function at(values: ArrayLike<number> | undefined, position: number): number {
  return values?.[position] as number;
}
