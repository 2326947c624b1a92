/**
 * One model in training: its trainable weights, accumulated gradients and Adam moments, held as jax arrays that this
 * class owns and frees. Full training makes the whole model trainable; LoRA freezes it and trains an adapter tree
 * beside it, through the same code.
 */
import { inputOf, type LossDefinition, type LossTerms } from "../../losses/loss.ts";
import { lossNamed } from "../../losses/registry.ts";
import type { Architecture } from "./architecture.ts";
import { type Batch, type Datum, padRows, planBatches } from "./batch.ts";
import { type ArrayTree, arrayOf, type JaxArray, scalarOf } from "./jax.ts";
import type { Kernels } from "./kernels.ts";
import type { Tensor, Tensors } from "./safetensors.ts";
import type { BatchArrays, PassFunctions, PassOutput } from "./step.ts";

/** Protocol document, 5.5; the defaults are the SDK's. */
export interface AdamParams {
  readonly learningRate: number;
  readonly beta1: number;
  readonly beta2: number;
  readonly eps: number;
  readonly weightDecay: number;
  /** L2 norm over all trainable tensors to which the gradient is clipped; 0 is off. */
  readonly gradClipNorm: number;
}

export const ADAM_DEFAULTS: AdamParams = {
  learningRate: 1e-4,
  beta1: 0.9,
  beta2: 0.95,
  eps: 1e-12,
  weightDecay: 0,
  gradClipNorm: 0,
};

export interface OptimizerState {
  /** Updates made so far. */
  readonly step: number;
  readonly first: Tensors;
  readonly second: Tensors;
}

export interface RowResult {
  /** Targets a position: arrays are [N · width]. */
  readonly width: number;
  /** log p(target) or, of a critic, the value: one per target. */
  readonly outputs: Float32Array;
  /** The loss of each target, before the sum. */
  readonly elementwiseLoss: Float32Array;
}

export interface PassResult {
  readonly output: PassOutput;
  /** In the request's order. */
  readonly rows: readonly RowResult[];
  /** Σ over rows and positions, added in the request's order in double precision. */
  readonly lossSum: number;
}

export interface LossCall {
  readonly name: string;
  /** Every option of the loss. */
  readonly options: Readonly<Record<string, number>>;
}

/** A request cannot be carried out for a reason its sender can mend. Nothing of the model has changed. */
export class RequestError extends Error {
  override readonly name = "RequestError";
}

export interface TrainerOptions {
  readonly architecture: Architecture;
  readonly trainable: Tensors;
  /** Shared with other models, never freed here. Empty where everything is trained. */
  readonly frozen: ArrayTree;
  /** alpha / rank for LoRA. */
  readonly adapterScale?: number;
  /** What a pass computes; a critic's values need its head among the trainable tensors. */
  readonly output?: PassOutput;
}

export class Trainer {
  readonly #kernels: Kernels;
  readonly #options: TrainerOptions;
  #weights: ArrayTree;
  #first: ArrayTree;
  #second: ArrayTree;
  #gradients: ArrayTree | undefined;
  #step = 0;

  constructor(kernels: Kernels, options: TrainerOptions) {
    this.#kernels = kernels;
    this.#options = options;
    this.#weights = this.#upload(options.trainable);
    this.#first = this.#zeros();
    this.#second = this.#zeros();
  }

  /** Updates made so far. */
  get step(): number {
    return this.#step;
  }

  get output(): PassOutput {
    return this.#options.output ?? "logprobs";
  }

  /** Outputs and losses without gradients. Throws RequestError where a loss is not finite. */
  async forward(data: readonly Datum[], loss: LossCall): Promise<PassResult> {
    const outputs = await this.#forward(data);
    return this.#resultOf(data, outputs, evaluate(this.#lossOf(loss), data, outputs, loss));
  }

  /** Adds the gradient of the loss's sum to what has accumulated; all of it or, on an error, nothing. */
  async forwardBackward(data: readonly Datum[], loss: LossCall): Promise<PassResult> {
    const definition = this.#lossOf(loss);
    const backward = this.#pass().forwardBackward(definition);
    let sum: ArrayTree | undefined;
    const surrogates: JaxArray[] = [];
    try {
      const outputs = await this.#run(data, (batch) => {
        const arrays = {
          tensors: this.#lossTensors(definition, batch, data, loss),
          options: this.#scalars(loss.options),
        };
        const pass = backward(
          this.#refs(this.#weights),
          this.#refs(this.#options.frozen),
          this.#batchArrays(batch, data),
          arrays,
        );
        surrogates.push(pass.surrogate);
        sum = sum === undefined ? pass.gradients : this.#kernels.optimizer.add(sum, pass.gradients);
        return pass.outputs;
      });
      const result = this.#resultOf(data, outputs, evaluate(definition, data, outputs, loss));
      for (const surrogate of surrogates.splice(0))
        if (!Number.isFinite(await readScalar(surrogate))) refuseNotFinite();
      if (sum !== undefined)
        this.#gradients = this.#gradients === undefined ? sum : this.#kernels.optimizer.add(this.#gradients, sum);
      sum = undefined;
      return result;
    } finally {
      this.#free(sum);
      for (const surrogate of surrogates) surrogate.dispose();
    }
  }

  /**
   * One AdamW update by the accumulated gradient (zeros if there is none), which it clears. Returns the gradient's L2
   * norm before clipping. A gradient that is not finite is dropped and fails the request: weights stay as they were.
   */
  async optimStep(params: AdamParams): Promise<{ readonly gradNorm: number }> {
    const { jax, optimizer } = this.#kernels;
    const gradients = this.#gradients ?? this.#zeros();
    this.#gradients = undefined;
    const gradNorm = Math.sqrt(await readScalar(optimizer.squaredNorm(this.#refs(gradients))));
    if (!Number.isFinite(gradNorm)) {
      this.#free(gradients);
      throw new RequestError(
        "The accumulated gradient is not finite; it was dropped and the weights were left as they are.",
      );
    }
    const step = this.#step + 1;
    const clips = params.gradClipNorm > 0 && gradNorm > params.gradClipNorm;
    const scalar = (value: number) => scalarOf(jax, value);
    const next = optimizer.update({ weights: this.#weights, first: this.#first, second: this.#second }, gradients, {
      learningRate: scalar(params.learningRate),
      gradientScale: scalar(clips ? params.gradClipNorm / gradNorm : 1),
      beta1: scalar(params.beta1),
      oneMinusBeta1: scalar(1 - params.beta1),
      beta2: scalar(params.beta2),
      oneMinusBeta2: scalar(1 - params.beta2),
      firstCorrection: scalar(1 / (1 - params.beta1 ** step)),
      secondCorrection: scalar(1 / (1 - params.beta2 ** step)),
      eps: scalar(params.eps),
      weightDecay: scalar(params.weightDecay),
    });
    this.#weights = next.weights;
    this.#first = next.first;
    this.#second = next.second;
    this.#step = step;
    return { gradNorm };
  }

  /** Copies of the trainable weights. */
  exportWeights(): Promise<Tensors> {
    return this.#download(this.#weights);
  }

  async exportOptimizer(): Promise<OptimizerState> {
    return { step: this.#step, first: await this.#download(this.#first), second: await this.#download(this.#second) };
  }

  /** Takes over saved weights; without `optimizer`, moments and step count start fresh. Pending gradients go. */
  restore(weights: Tensors, optimizer: OptimizerState | undefined): void {
    this.dispose();
    this.#weights = this.#upload(weights);
    this.#first = optimizer ? this.#upload(optimizer.first) : this.#zeros();
    this.#second = optimizer ? this.#upload(optimizer.second) : this.#zeros();
    this.#step = optimizer?.step ?? 0;
  }

  /** Frees all arrays. */
  dispose(): void {
    for (const tree of [this.#weights, this.#first, this.#second, this.#gradients]) this.#free(tree);
    this.#gradients = undefined;
  }

  #lossOf({ name }: LossCall): LossDefinition {
    const loss = lossNamed(name);
    if (loss === undefined) throw new Error(`there is no loss ${name}`);
    const expected = this.output === "values" ? "critic" : "policy";
    if (loss.of !== expected)
      throw new RequestError(`${name} is a loss for a ${loss.of}, and this model is a ${expected}.`);
    return loss;
  }

  #pass(): PassFunctions {
    return this.#kernels.pass(this.#options.architecture, this.output, this.#options.adapterScale);
  }

  #forward(data: readonly Datum[]): Promise<readonly Float32Array[]> {
    return this.#run(data, (batch) =>
      this.#pass().forward(this.#refs(this.#weights), this.#refs(this.#options.frozen), this.#batchArrays(batch, data)),
    );
  }

  /** The outputs of each datum, one per target, in the request's order. */
  async #run(data: readonly Datum[], pass: (batch: Batch) => JaxArray): Promise<readonly Float32Array[]> {
    const rows: Float32Array[] = new Array(data.length);
    for (const [i, batch] of planBatches(data).entries()) {
      if (i > 0) await this.#kernels.pause();
      const all = await readFloats(pass(batch));
      batch.rows.forEach((row, i) => {
        const from = i * batch.length * batch.width;
        rows[row] = all.slice(from, from + (data[row] as Datum).targets.length);
      });
    }
    return rows;
  }

  /** Throws RequestError where a loss is not finite, or not in float32. */
  #resultOf(data: readonly Datum[], outputs: readonly Float32Array[], terms: readonly LossTerms[]): PassResult {
    const lossSum = terms.reduce((sum, { losses }) => losses.reduce((part, value) => part + value, sum), 0);
    const rows = outputs.map((row, i) => ({
      width: row.length / (data[i] as Datum).tokens.length,
      outputs: row,
      elementwiseLoss: Float32Array.from((terms[i] as LossTerms).losses),
    }));
    if (!Number.isFinite(lossSum) || !rows.every((row) => row.elementwiseLoss.every(Number.isFinite)))
      refuseNotFinite();
    return { output: this.output, rows, lossSum };
  }

  #batchArrays(batch: Batch, data: readonly Datum[]): BatchArrays {
    const { numpy } = this.#kernels.jax;
    const rowsOf = (key: "tokens" | "targets", each: number) =>
      numpy
        .array(
          padRows(
            batch,
            each,
            (count) => new Int32Array(count),
            (row) => (data[row] as Datum)[key],
          ),
        )
        .reshape([batch.size, batch.length * each]);
    return {
      tokens: rowsOf("tokens", 1),
      targets: rowsOf("targets", batch.width),
      positions: this.#kernels.positions(this.#options.architecture, batch.length),
    };
  }

  #lossTensors({ inputs }: LossDefinition, batch: Batch, data: readonly Datum[], { options }: LossCall): ArrayTree {
    const tree: ArrayTree = {};
    for (const input of inputs) {
      const values = padRows(
        batch,
        batch.width,
        (count) => new Float32Array(count),
        (row) => {
          const { tensors, targets } = data[row] as Datum;
          return inputOf(input, { tensors, options }, targets.length);
        },
      );
      tree[input.name] = this.#kernels.jax.numpy.array(values).reshape([batch.size, batch.length * batch.width]);
    }
    return tree;
  }

  #scalars(values: Readonly<Record<string, number>>): ArrayTree {
    const { jax } = this.#kernels;
    return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, scalarOf(jax, value)]));
  }

  #upload(tensors: Tensors): ArrayTree {
    const tree: ArrayTree = {};
    for (const [name, { data, shape }] of tensors) tree[name] = arrayOf(this.#kernels.jax, data, shape);
    return tree;
  }

  async #download(tree: ArrayTree): Promise<Tensors> {
    const tensors = new Map<string, Tensor>();
    for (const name of this.#options.trainable.keys()) {
      const array = tree[name] as JaxArray;
      const shape = [...array.shape];
      tensors.set(name, { shape, data: await readFloats(array.ref) });
    }
    return tensors;
  }

  #zeros(): ArrayTree {
    const tree: ArrayTree = {};
    for (const [name, { data, shape }] of this.#options.trainable)
      tree[name] = arrayOf(this.#kernels.jax, new Float32Array(data.length), shape);
    return tree;
  }

  #refs(tree: ArrayTree): ArrayTree {
    return this.#kernels.jax.tree.ref(tree);
  }

  #free(tree: ArrayTree | undefined): void {
    if (tree !== undefined) this.#kernels.jax.tree.dispose(tree);
  }
}

function evaluate(
  loss: LossDefinition,
  data: readonly Datum[],
  outputs: readonly ArrayLike<number>[],
  { options }: LossCall,
): readonly LossTerms[] {
  return data.map(({ tensors }, i) => loss.evaluate({ outputs: outputs[i] as ArrayLike<number>, tensors, options }));
}

function refuseNotFinite(): never {
  throw new RequestError("The loss is not a finite number for these inputs, so the request was dropped.");
}

/** Consumes the array. */
async function readFloats(array: JaxArray): Promise<Float32Array> {
  return Float32Array.from((await array.data()) as Float32Array);
}

async function readScalar(array: JaxArray): Promise<number> {
  return (await readFloats(array))[0] as number;
}
