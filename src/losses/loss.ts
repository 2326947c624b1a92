/**
 * What a loss is to the rest of the program: its options, its inputs, where it exists, and its formula.
 *
 * Every loss is a sum over the positions of datums, and reaches the model through one number a position only: the
 * log-probability of the target or, for a critic, the value. So a formula gives two numbers a position, its loss and
 * the loss's derivative by that number, and a server or a client needs nothing else to train with it: the gradient
 * is that of Σ derivative · number with the derivatives held fixed.
 */
import { DOUBLES, type Doubles, joinedDoubles, withRoom } from "./doubles.ts";
import { type Formula, weigh } from "./formula.ts";

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
  /** What the formula reads under this name, where that is not the datum's own tensor as it is. */
  readonly from?: (datum: Pick<LossArguments, "tensors" | "options">) => ArrayLike<number> | number;
}

/** One datum as a loss is given it. */
export interface LossArguments {
  /** [N] log p(target) in nats under the model being trained; for a critic [N] its values. */
  readonly outputs: ArrayLike<number>;
  /** [N] each, by name; absent where the datum has none. */
  readonly tensors: Readonly<Record<string, ArrayLike<number> | undefined>>;
  /** Every option of the loss. */
  readonly options: Readonly<Record<string, number>>;
}

/** One datum where all have the same options. */
export type LossData = Omit<LossArguments, "options">;

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
  /**
   * The formula of one position for a reader. ℓ: log p(token) as it is trained, q: as it was sampled, A: advantage, v: value, R: return;
   * sg: no gradient goes through.
   */
  readonly text: string;
  readonly options: readonly LossOption[];
  readonly inputs: readonly LossInput[];
  /** What the model gives a position: log-probabilities, or a critic's values. */
  readonly of: "policy" | "critic";
  /** Whether the derivatives are the same whatever the outputs are. */
  readonly isLinear: boolean;
  /** The ratio is one for the whole answer: a mean, in which weights are a mask. Everywhere else they only multiply. */
  readonly perSequence?: true;
  /** Which kind of run may use it. */
  readonly runs: readonly ("sl" | "rl")[];
  /** Backends that compute it themselves. */
  readonly backends: readonly LossBackend[];
  /** Before weights. */
  readonly formula: Formula;
  /** The formula in double precision, weighted. */
  readonly evaluate: (datum: LossArguments) => LossTerms;
  /** The sum of the losses that `evaluate` gives, over data with the same options. */
  readonly sum: (data: readonly LossData[], options: LossArguments["options"]) => number;
}

/** `weights` is the mask and the weight of each position, in every loss: 1 where a datum has none. */
export const WEIGHTS: LossInput = { name: "weights", required: false, from: ({ tensors }) => tensors.weights ?? 1 };

/** What the losses of reinforcement learning read: of the policy that sampled, and of the reward. */
export const POLICY_INPUTS: readonly LossInput[] = [
  { name: "logprobs", required: true },
  { name: "advantages", required: true },
  WEIGHTS,
];

type InputData = Pick<LossArguments, "tensors" | "options">;

/** What the formula reads under an input's name, [N]. */
export function inputOf(input: LossInput, datum: InputData, length: number): ArrayLike<number> {
  const values = valuesOf(input, datum);
  return typeof values === "number" ? new Float64Array(length).fill(values) : values;
}

/** [N], or one number for all positions. */
function valuesOf({ name, from }: LossInput, datum: InputData): ArrayLike<number> | number {
  const values = from ? from(datum) : datum.tensors[name];
  if (values === undefined) throw new Error(`a datum lacks ${name}`);
  return values;
}

/** Positions up to which data are evaluated as one: what an operation costs beside its arithmetic is then shared by dozens of answers. */
const JOINED_POSITIONS = 4096;

export function defineLoss(loss: Omit<LossDefinition, "evaluate" | "sum">): LossDefinition {
  return {
    ...loss,
    evaluate: ({ options, ...datum }) =>
      withRoom(() => {
        const { weights, terms } = termsOf(loss, [datum], options);
        const [losses, derivatives] = [terms.loss, terms.derivative].map((term) => weigh(DOUBLES, weights, term));
        return { losses: (losses as Float64Array).slice(), derivatives: (derivatives as Float64Array).slice() };
      }),
    sum: (data, options) => {
      let total = 0;
      for (const chunk of inChunks(data, loss.perSequence ? 1 : JOINED_POSITIONS)) {
        total += withRoom(() => {
          const { weights, terms } = termsOf(loss, chunk, options);
          return DOUBLES.sum(weigh(DOUBLES, weights, terms.loss)) as number;
        });
      }
      return total;
    },
  };
}

/** Neighbours, as many as have so many positions together; at least one. */
function inChunks(data: readonly LossData[], positions: number): readonly (readonly LossData[])[] {
  const chunks: LossData[][] = [];
  let room = 0;
  for (const datum of data) {
    const last = chunks.at(-1);
    if (last && datum.outputs.length <= room) last.push(datum);
    else {
      chunks.push([datum]);
      room = positions;
    }
    room -= datum.outputs.length;
  }
  return chunks;
}

/** What the formula gives for some data side by side, in room that is used again, and the weights it is still to be multiplied by. */
function termsOf(
  { inputs, formula }: Pick<LossDefinition, "inputs" | "formula">,
  data: readonly LossData[],
  options: LossArguments["options"],
) {
  const lengths = data.map(({ outputs }) => outputs.length);
  const joined = (values: (datum: LossData) => Doubles) => joinedDoubles(data.map(values), lengths);
  const tensors = new Map(
    inputs.map((input) => [input.name, joined(({ tensors }) => valuesOf(input, { tensors, options }))]),
  );
  const terms = formula<Doubles>(DOUBLES, {
    output: joined(({ outputs }) => outputs),
    tensor: (name) => found(tensors.get(name), name),
    option: (name) => found(options[name], name),
  });
  return { weights: found(tensors.get("weights"), "weights"), terms };
}

function found<T>(value: T | undefined, name: string): T {
  if (value === undefined) throw new Error(`the loss has no ${name}`);
  return value;
}
