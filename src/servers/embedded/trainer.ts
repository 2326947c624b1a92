/**
 * One model in training: its trainable weights, accumulated gradients and Adam moments, held as jax arrays that this
 * class owns and frees. Full training makes the whole model trainable; LoRA freezes it and trains an adapter tree
 * beside it, through the same code.
 */
import type { Architecture } from "./architecture.ts";
import { type Batch, type Datum, padRows, planBatches } from "./batch.ts";
import { type ArrayTree, arrayOf, type JaxArray, scalarOf } from "./jax.ts";
import type { Kernels } from "./kernels.ts";
import { findLoss } from "./losses.ts";
import type { Tensor, Tensors } from "./safetensors.ts";
import type { BatchArrays } from "./step.ts";

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
  /** log p(target), one per position. */
  readonly logprobs: Float32Array;
  /** The loss at each position, before the sum. */
  readonly elementwiseLoss: Float32Array;
}

export interface PassResult {
  /** In the request's order. */
  readonly rows: readonly RowResult[];
  /** Σ over rows and positions, added in the request's order in double precision. */
  readonly lossSum: number;
}

export interface LossCall {
  readonly name: string;
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

  /** Log-probabilities and losses without gradients. Throws RequestError where a loss is not finite. */
  async forward(data: readonly Datum[], loss: LossCall): Promise<PassResult> {
    const pass = this.#kernels.pass(this.#options.architecture, loss.name, this.#options.adapterScale);
    return this.#run(data, loss, (batch) =>
      pass.forward(this.#refs(this.#weights), this.#refs(this.#options.frozen), batch),
    );
  }

  /** Adds the gradient of the loss's sum to what has accumulated; all of it or, on an error, nothing. */
  async forwardBackward(data: readonly Datum[], loss: LossCall): Promise<PassResult> {
    const pass = this.#kernels.pass(this.#options.architecture, loss.name, this.#options.adapterScale);
    let sum: ArrayTree | undefined;
    try {
      const result = await this.#run(data, loss, (batch) => {
        const { gradients, ...arrays } = pass.forwardBackward(
          this.#refs(this.#weights),
          this.#refs(this.#options.frozen),
          batch,
        );
        sum = sum === undefined ? gradients : this.#kernels.optimizer.add(sum, gradients);
        return arrays;
      });
      if (sum !== undefined)
        this.#gradients = this.#gradients === undefined ? sum : this.#kernels.optimizer.add(this.#gradients, sum);
      sum = undefined;
      return result;
    } finally {
      this.#free(sum);
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

  async #run(
    data: readonly Datum[],
    loss: LossCall,
    pass: (batch: BatchArrays) => { logprobs: JaxArray; elementwise: JaxArray },
  ): Promise<PassResult> {
    const rows: RowResult[] = new Array(data.length);
    for (const batch of planBatches(data)) {
      const { logprobs, elementwise } = pass(this.#batchArrays(batch, data, loss));
      const all = { logprobs: await readFloats(logprobs), elementwiseLoss: await readFloats(elementwise) };
      batch.rows.forEach((row, i) => {
        const end = i * batch.length + (data[row] as Datum).tokens.length;
        const cut = (values: Float32Array) => values.slice(i * batch.length, end);
        rows[row] = { logprobs: cut(all.logprobs), elementwiseLoss: cut(all.elementwiseLoss) };
      });
    }
    const lossSum = rows.reduce((sum, row) => row.elementwiseLoss.reduce((part, value) => part + value, sum), 0);
    if (!Number.isFinite(lossSum))
      throw new RequestError("The loss is not a finite number for these inputs, so the request was dropped.");
    return { rows, lossSum };
  }

  #batchArrays(batch: Batch, data: readonly Datum[], loss: LossCall): BatchArrays {
    const { numpy } = this.#kernels.jax;
    const shape = [batch.size, batch.length];
    const integers = (count: number) => new Int32Array(count);
    const floats = (count: number) => new Float32Array(count);
    const tensors: ArrayTree = {};
    for (const name of Object.keys(findLoss(loss.name)?.inputs ?? {}))
      tensors[name] = numpy
        .array(padRows(batch, floats, (row) => (data[row] as Datum).tensors[name] as Float32Array))
        .reshape(shape);
    const options: ArrayTree = {};
    for (const [name, value] of Object.entries(loss.options)) options[name] = scalarOf(this.#kernels.jax, value);
    return {
      tokens: numpy.array(padRows(batch, integers, (row) => (data[row] as Datum).tokens)).reshape(shape),
      targets: numpy.array(padRows(batch, integers, (row) => (data[row] as Datum).targets)).reshape(shape),
      tensors,
      options,
      positions: this.#kernels.positions(this.#options.architecture, batch.length),
    };
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

/** Consumes the array. */
async function readFloats(array: JaxArray): Promise<Float32Array> {
  return Float32Array.from((await array.data()) as Float32Array);
}

async function readScalar(array: JaxArray): Promise<number> {
  return (await readFloats(array))[0] as number;
}
