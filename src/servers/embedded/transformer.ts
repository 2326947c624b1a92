/**
 * The decoder as jax-js operations: what training differentiates. (Sampling runs `decoder.ts`, whose results do not
 * depend on batch shapes.) jax-js counts references: a function consumes its arguments, and `.ref` keeps one for later;
 * so every weight is used as `.ref` here, and the caller disposes the tree once.
 */
import type { Architecture } from "./architecture.ts";
import type { ArrayTree, Jax, JaxArray } from "./jax.ts";
import { EMBEDDING, FINAL_NORM, layerName, type Projection, UNEMBEDDING, VALUE_HEAD } from "./weights.ts";

/** A model's weights while it is traced: the base's, and LoRA's A `[rank, in]` and B `[out, rank]` beside a projection. */
export interface TracedWeights {
  readonly base: ArrayTree;
  readonly adapter: ArrayTree;
  /** alpha / rank. */
  readonly adapterScale: number;
}

/** Arguments that depend on the batch's shape only. */
export type PositionArrays = {
  /** `[length, headDim / 2]`. */
  readonly cosines: JaxArray;
  readonly sines: JaxArray;
  /** `[length, length]`: 0 where a position may look, a large negative number where not. */
  readonly mask: JaxArray;
};

interface Trace extends TracedWeights {
  readonly jax: Jax;
  readonly architecture: Architecture;
  readonly batch: number;
  readonly length: number;
  readonly positions: PositionArrays;
}

export function loraA(layer: number, projection: Projection): string {
  return layerName(layer, `${projection}.lora_A.weight`);
}

export function loraB(layer: number, projection: Projection): string {
  return layerName(layer, `${projection}.lora_B.weight`);
}

export const UNEMBEDDING_A = "lm_head.lora_A.weight";
export const UNEMBEDDING_B = "lm_head.lora_B.weight";

/**
 * The last layer's normed output `[batch · length, hidden]` from embeddings `[batch · length, hidden]`. Rows are padded on the right;
 * causal attention keeps padding out of all real positions. Consumes `embeddings`, not the weights.
 */
export function hiddenOf(
  jax: Jax,
  architecture: Architecture,
  weights: TracedWeights,
  shape: { readonly batch: number; readonly length: number },
  embeddings: JaxArray,
  positions: PositionArrays,
): JaxArray {
  const trace: Trace = { jax, architecture, ...weights, ...shape, positions };
  let x = embeddings;
  for (let layer = 0; layer < architecture.layers; layer++) {
    const attended = attention(trace, layer, normed(trace, x.ref, layerName(layer, "input_layernorm.weight")));
    x = x.add(attended);
    const fed = feedForward(trace, layer, normed(trace, x.ref, layerName(layer, "post_attention_layernorm.weight")));
    x = x.add(fed);
  }
  return normed(trace, x, FINAL_NORM);
}

/** Raw logits `[batch · length, vocabulary]`; an adapter of the unembedding is added in. Consumes `hidden`. */
export function logitsOf(
  { numpy }: Jax,
  { tiedEmbeddings }: Architecture,
  { base, adapter, adapterScale }: TracedWeights,
  hidden: JaxArray,
): JaxArray {
  const unembedding = base[tiedEmbeddings ? EMBEDDING : UNEMBEDDING] as JaxArray;
  const times = (left: JaxArray, weight: JaxArray) => numpy.matmul(left, numpy.transpose(weight.ref));
  const [a, b] = [adapter[UNEMBEDDING_A], adapter[UNEMBEDDING_B]];
  if (a === undefined || b === undefined) return times(hidden, unembedding);
  const low = times(times(hidden.ref, a), b).mul(adapterScale);
  return times(hidden, unembedding).add(low);
}

/** A critic's value at each position, `[batch · length, 1]`. Consumes `hidden`. */
export function valuesOf({ numpy }: Jax, trainable: ArrayTree, hidden: JaxArray): JaxArray {
  return numpy.matmul(hidden, numpy.transpose((trainable[VALUE_HEAD] as JaxArray).ref));
}

function weightOf(trace: Trace, name: string): JaxArray {
  return (trace.base[name] as JaxArray).ref;
}

/** x / sqrt(mean(x²) + eps) · weight, over the last dimension. */
function normed({ jax: { numpy }, architecture, base }: Trace, x: JaxArray, name: string): JaxArray {
  const meanSquare = numpy.mean(numpy.square(x.ref), -1, { keepdims: true });
  const scale = numpy.reciprocal(numpy.sqrt(meanSquare.add(architecture.rmsEps)));
  return x.mul(scale).mul((base[name] as JaxArray).ref);
}

/** x W ᵀ + bias + scale · (x Aᵀ) Bᵀ. */
function linear(trace: Trace, layer: number, projection: Projection, x: JaxArray): JaxArray {
  const { numpy } = trace.jax;
  const times = (left: JaxArray, weight: JaxArray) => numpy.matmul(left, numpy.transpose(weight));
  const a = trace.adapter[loraA(layer, projection)];
  const b = trace.adapter[loraB(layer, projection)];
  const low = a && b ? times(times(x.ref, a.ref), b.ref).mul(trace.adapterScale) : undefined;
  let y = times(x, weightOf(trace, layerName(layer, `${projection}.weight`)));
  const bias = trace.base[layerName(layer, `${projection}.bias`)];
  if (bias) y = y.add(bias.ref);
  return low ? y.add(low) : y;
}

function attention(trace: Trace, layer: number, x: JaxArray): JaxArray {
  const { architecture: a, batch, length, positions } = trace;
  const { lax, numpy } = trace.jax;
  const group = a.heads / a.keyValueHeads;
  const split = (y: JaxArray, heads: number) => y.reshape([batch, length, heads, a.headDim]).transpose([0, 2, 1, 3]);
  let query = split(linear(trace, layer, "self_attn.q_proj", x.ref), a.heads);
  let key = split(linear(trace, layer, "self_attn.k_proj", x.ref), a.keyValueHeads);
  const value = split(linear(trace, layer, "self_attn.v_proj", x), a.keyValueHeads);
  if (a.family === "qwen3") {
    query = normed(trace, query, layerName(layer, "self_attn.q_norm.weight"));
    key = normed(trace, key, layerName(layer, "self_attn.k_norm.weight"));
  }
  query = rotated(trace, query);
  key = rotated(trace, key);
  // The heads that share a key are laid out as more rows of it, so that keys and values are never repeated.
  const rows = [batch, a.keyValueHeads, group * length, a.headDim];
  const scores = numpy
    .matmul(query.reshape(rows), key.transpose([0, 1, 3, 2]))
    .mul(1 / Math.sqrt(a.headDim))
    .reshape([batch, a.keyValueHeads, group, length, length])
    .add(positions.mask.ref);
  // Softmax, divided by its sum after the values are mixed: on headDim numbers a row instead of on `length`.
  const most = lax.stopGradient(numpy.max(scores.ref, -1, { keepdims: true }));
  const shares = numpy.exp(scores.sub(most)).reshape([batch, a.keyValueHeads, group * length, length]);
  const totals = numpy.sum(shares.ref, -1, { keepdims: true });
  const mixed = numpy
    .matmul(shares, value)
    .mul(numpy.reciprocal(totals))
    .reshape([batch, a.heads, length, a.headDim])
    .transpose([0, 2, 1, 3])
    .reshape([batch * length, a.heads * a.headDim]);
  return linear(trace, layer, "self_attn.o_proj", mixed);
}

/** Turns the pairs (i, i + headDim/2) of each head by their position's angle. x: `[batch, heads, length, headDim]`. */
function rotated({ jax: { numpy }, positions }: Trace, x: JaxArray): JaxArray {
  const [first, second] = numpy.split(x, 2, -1) as [JaxArray, JaxArray];
  const { cosines, sines } = positions;
  const left = first.ref.mul(cosines.ref).sub(second.ref.mul(sines.ref));
  const right = second.mul(cosines.ref).add(first.mul(sines.ref));
  return numpy.concatenate([left, right], -1);
}

function feedForward(trace: Trace, layer: number, x: JaxArray): JaxArray {
  const gate = trace.jax.nn.silu(linear(trace, layer, "mlp.gate_proj", x.ref));
  const up = linear(trace, layer, "mlp.up_proj", x);
  return linear(trace, layer, "mlp.down_proj", gate.mul(up));
}
