/**
 * The compiled functions of training. They are made once per architecture, kind of output and adapter scale (the backward pass
 * also per loss), and shared by all models of a server; jax-js compiles each anew for every batch shape it meets, which
 * is why shapes are bucketed. A loss is its formula (`src/losses`), traced into the pass between its forward and its
 * backward half; tensors and options are arguments, so that other values of them compile nothing.
 */
import type { LossDefinition } from "../../losses/loss.ts";
import type { Architecture } from "./architecture.ts";
import type { ArrayTree, Jax, JaxArray } from "./jax.ts";
import { derivativesOf } from "./loss-arrays.ts";
import { hiddenOf, logitsOf, type PositionArrays, valuesOf } from "./transformer.ts";
import { EMBEDDING } from "./weights.ts";

/** Tokens are `[batch, length]`, targets `[batch, length · width]`: `width` targets a position, side by side. */
export type BatchArrays = {
  readonly tokens: JaxArray;
  readonly targets: JaxArray;
  readonly positions: PositionArrays;
};

/** What a pass computes at each position: log p(target), or the value that a critic's head reads off. */
export type PassOutput = "logprobs" | "values";

/** What a loss reads: its tensors by name, each of the targets' shape, and its options, scalars. */
export type LossArrays = { readonly tensors: ArrayTree; readonly options: ArrayTree };

export interface BackwardOutput {
  /** As `forward` gives them. */
  readonly outputs: JaxArray;
  /** Of the loss's sum, by name of the trainable tensor. */
  readonly gradients: ArrayTree;
  /** Σ derivative · output, a scalar that is not finite if one of the derivatives is not. */
  readonly surrogate: JaxArray;
}

type Backward = (trainable: ArrayTree, frozen: ArrayTree, batch: BatchArrays, loss: LossArrays) => BackwardOutput;

/** Every function consumes its arguments. */
export interface PassFunctions {
  /** The outputs, of the targets' shape. */
  readonly forward: (trainable: ArrayTree, frozen: ArrayTree, batch: BatchArrays) => JaxArray;
  readonly forwardBackward: (loss: LossDefinition) => Backward;
}

export interface PassKind {
  readonly architecture: Architecture;
  readonly output: PassOutput;
  /** alpha / rank of a LoRA adapter, or undefined where the whole model is trained. */
  readonly adapterScale: number | undefined;
}

export function compilePass(jax: Jax, { architecture, output, adapterScale }: PassKind): PassFunctions {
  const { lax, numpy, nn, jit, tree, valueAndGrad } = jax;
  const isFull = adapterScale === undefined;

  /**
   * From embeddings on, so that the embedding's own gradient can be had without differentiating the lookup. `shift`
   * `[vocabulary]` is added to the logits.
   */
  const outputsOf = (
    trainable: ArrayTree,
    embeddings: JaxArray,
    frozen: ArrayTree,
    { targets, positions }: Omit<BatchArrays, "tokens">,
    shift?: JaxArray,
  ): JaxArray => {
    const [size, places] = targets.shape as [number, number];
    const [length] = positions.cosines.shape as [number];
    const weights = isFull
      ? { base: trainable, adapter: {}, adapterScale: 0 }
      : { base: frozen, adapter: trainable, adapterScale };
    const hidden = hiddenOf(jax, architecture, weights, { batch: size, length }, embeddings, positions);
    if (output === "values") {
      targets.dispose();
      shift?.dispose();
      return valuesOf(jax, trainable, hidden).reshape([size, length]);
    }
    const plain = logitsOf(jax, architecture, weights, hidden);
    const logits = shift ? plain.add(shift) : plain;
    const width = places / length;
    const columns = width === 1 ? [targets] : numpy.split(targets.reshape([size * length, width]), width, 1);
    const chosen = columns.map((column) =>
      numpy.sum(logits.ref.mul(oneHot(jax, column, architecture.vocabSize)), -1, { keepdims: true }),
    );
    const all = width === 1 ? (chosen[0] as JaxArray) : numpy.concatenate(chosen, -1);
    return all.sub(nn.logsumexp(logits, -1, { keepdims: true })).reshape([size, places]);
  };

  const lookUp = (trainable: ArrayTree, frozen: ArrayTree, tokens: JaxArray): JaxArray => {
    const table = (isFull ? trainable : frozen)[EMBEDDING] as JaxArray;
    return numpy.take(table.ref, tokens.reshape([tokens.size]), 0);
  };

  const release = (trainable: ArrayTree, frozen: ArrayTree, positions: PositionArrays) => {
    for (const part of [trainable, frozen, positions]) tree.dispose(part);
  };

  const forward = jit((trainable: ArrayTree, frozen: ArrayTree, { tokens, ...batch }: BatchArrays) => {
    const outputs = outputsOf(trainable, lookUp(trainable, frozen, tokens), frozen, batch);
    release(trainable, frozen, batch.positions);
    return outputs;
  });

  /** Σ derivatives · outputs with the derivatives held fixed, whose gradient is the loss's; the outputs beside it. */
  const surrogateOf = (
    trainable: ArrayTree,
    embeddings: JaxArray,
    shift: JaxArray,
    frozen: ArrayTree,
    batch: Omit<BatchArrays, "tokens">,
    loss: LossDefinition,
    { tensors, options }: LossArrays,
  ) => {
    const outputs = outputsOf(trainable, embeddings, frozen, batch, shift);
    const fixed = lax.stopGradient(outputs.ref);
    const derivatives = derivativesOf(jax, loss, fixed, tensors, options);
    fixed.dispose();
    for (const part of [tensors, options]) tree.dispose(part);
    release(trainable, frozen, batch.positions);
    return [numpy.sum(outputs.ref.mul(derivatives)), outputs] as [JaxArray, JaxArray];
  };

  const differentiate = (loss: LossDefinition) =>
    jit((trainable: ArrayTree, frozen: ArrayTree, { tokens, ...batch }: BatchArrays, arrays: LossArrays) => {
      const embeddings = lookUp(trainable, frozen, tokens);
      // The gradient by a shift of the logits is not wanted; but jax-js stores a value that two consumers read, and
      // would else compute the logits' gradient anew for each of the hidden numbers (measured: 420 of 560 ms).
      const shift = numpy.zeros([architecture.vocabSize]);
      const surrogate = (t: ArrayTree, e: JaxArray, s: JaxArray, f: ArrayTree, b: typeof batch, l: LossArrays) =>
        surrogateOf(t, e, s, f, b, loss, l);
      const [[sum, outputs], [gradients, embeddingGradient, shiftGradient]] = valueAndGrad(surrogate, {
        argnums: [0, 1, 2],
        hasAux: true,
      })(trainable, embeddings, shift, frozen, batch, arrays) as unknown as [
        [JaxArray, JaxArray],
        [ArrayTree, JaxArray, JaxArray],
      ];
      return { surrogate: sum, outputs, gradients, embeddingGradient, shiftGradient };
    });

  // A function of its own: within the other one, jax-js fuses the whole backward pass of the first layer's norm into
  // this product and computes it anew for every vocabulary entry (measured: 61 of 140 ms).
  const addLookUp = jit((gradient: JaxArray, tokens: JaxArray, embeddingGradient: JaxArray) => {
    const chosen = oneHot(jax, tokens, architecture.vocabSize);
    return gradient.add(numpy.matmul(numpy.transpose(chosen), embeddingGradient));
  });

  const backward = (loss: LossDefinition): Backward => {
    const compiled = differentiate(loss);
    return (trainable, frozen, batch, arrays) => {
      const tokens = isFull ? batch.tokens.ref : undefined;
      const { embeddingGradient, shiftGradient, gradients, ...rest } = compiled(trainable, frozen, batch, arrays);
      shiftGradient.dispose();
      if (tokens === undefined) {
        embeddingGradient.dispose();
        return { ...rest, gradients };
      }
      const whole = addLookUp(gradients[EMBEDDING] as JaxArray, tokens, embeddingGradient);
      return { ...rest, gradients: { ...gradients, [EMBEDDING]: whole } };
    };
  };

  const byLoss = new Map<string, Backward>();
  return {
    forward,
    forwardBackward: (loss) => {
      const known = byLoss.get(loss.name) ?? backward(loss);
      byLoss.set(loss.name, known);
      return known;
    },
  };
}

/**
 * `[tokens, vocabulary]`: 1 at each token, 0 elsewhere, as max(0, 1 − d²) of the distance d to the token: jax-js's own
 * looks rows up in an identity matrix, which its compiler cannot vectorise. Ids below 2²⁴ are exact in float32.
 */
function oneHot({ numpy }: Jax, tokens: JaxArray, vocabSize: number): JaxArray {
  const ids = numpy.arange(vocabSize).astype(numpy.float32).reshape([1, vocabSize]);
  const distance = tokens.astype(numpy.float32).reshape([tokens.size, 1]).sub(ids);
  return numpy.maximum(numpy.square(distance).neg().add(1), 0);
}

export type AdamArrays = { readonly weights: ArrayTree; readonly first: ArrayTree; readonly second: ArrayTree };
/** Scalars of one update. `firstCorrection` is 1 / (1 − β₁ᵗ), `secondCorrection` 1 / (1 − β₂ᵗ). */
export type AdamScalars = {
  readonly learningRate: JaxArray;
  readonly gradientScale: JaxArray;
  readonly beta1: JaxArray;
  readonly oneMinusBeta1: JaxArray;
  readonly beta2: JaxArray;
  readonly oneMinusBeta2: JaxArray;
  readonly firstCorrection: JaxArray;
  readonly secondCorrection: JaxArray;
  readonly eps: JaxArray;
  readonly weightDecay: JaxArray;
};

export interface OptimizerFunctions {
  readonly add: (left: ArrayTree, right: ArrayTree) => ArrayTree;
  /** Σ g² over the whole tree. */
  readonly squaredNorm: (gradients: ArrayTree) => JaxArray;
  readonly update: (state: AdamArrays, gradients: ArrayTree, scalars: AdamScalars) => AdamArrays;
}

export function compileOptimizer(jax: Jax): OptimizerFunctions {
  const { numpy, jit, tree } = jax;
  const add = jit((left: ArrayTree, right: ArrayTree) => {
    const sum: ArrayTree = {};
    for (const name in left) sum[name] = (left[name] as JaxArray).add(right[name] as JaxArray);
    return sum;
  });
  const squaredNorm = jit((gradients: ArrayTree) =>
    Object.values(gradients)
      .map((gradient) => numpy.sum(numpy.square(gradient)))
      .reduce((sum, part) => sum.add(part)),
  );
  // AdamW with decoupled decay (Loshchilov and Hutter 2019), as in the protocol document, 5.5.
  const update = jit(({ weights, first, second }: AdamArrays, gradients: ArrayTree, s: AdamScalars) => {
    const next = { weights: {} as ArrayTree, first: {} as ArrayTree, second: {} as ArrayTree };
    for (const name in weights) {
      const gradient = (gradients[name] as JaxArray).mul(s.gradientScale.ref);
      const m = (first[name] as JaxArray).mul(s.beta1.ref).add(gradient.ref.mul(s.oneMinusBeta1.ref));
      const v = (second[name] as JaxArray).mul(s.beta2.ref).add(numpy.square(gradient).mul(s.oneMinusBeta2.ref));
      const root = numpy.sqrt(v.ref.mul(s.secondCorrection.ref)).add(s.eps.ref);
      const step = m.ref.mul(s.firstCorrection.ref).mul(numpy.reciprocal(root));
      const weight = weights[name] as JaxArray;
      next.weights[name] = weight.ref.sub(step.add(weight.mul(s.weightDecay.ref)).mul(s.learningRate.ref));
      next.first[name] = m;
      next.second[name] = v;
    }
    tree.dispose(s);
    return next;
  });
  return { add, squaredNorm, update };
}
