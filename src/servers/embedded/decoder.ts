/**
 * The decoder for sampling: the same model as `transformer.ts`, with a key/value cache.
 *
 * Why not jax-js here: its kernels sum in an order that depends on the shapes of a call, so the bits of a sample would
 * depend on what else is in its batch. Here every value of a row is a sum in one fixed order over that row alone,
 * however many rows go through together; batching only means that a weight loaded once serves several rows. Products
 * with weights are float32 (`product.ts`), the rest is double precision, rounded to float32 when stored. No shape has to
 * be compiled either.
 */
import { type Architecture, rotaryTables } from "./architecture.ts";
import { exp } from "./exp.ts";
import { Products, type StoredWeight } from "./product.ts";
import {
  EMBEDDING,
  FINAL_NORM,
  layerName,
  type Model,
  PROJECTIONS,
  type Projection,
  projectionShape,
  UNEMBEDDING,
} from "./weights.ts";

/** What a sequence has seen so far. One array per layer, `[capacity, keyValueHeads · headDim]`. */
export interface Cache {
  readonly capacity: number;
  length: number;
  readonly keys: readonly Float32Array[];
  readonly values: readonly Float32Array[];
}

/** One token to take in. Rows of one cache follow each other in the order of their tokens. */
export interface DecoderRow {
  readonly cache: Cache;
  readonly token: number;
  /** Whether the logits after this token are wanted. */
  readonly wantsLogits: boolean;
}

interface Layer {
  readonly weights: Readonly<Record<Projection, StoredWeight>>;
  readonly biases: Readonly<Partial<Record<Projection, Float32Array>>>;
  readonly inputNorm: Float32Array;
  readonly postNorm: Float32Array;
  readonly queryNorm: Float32Array | undefined;
  readonly keyNorm: Float32Array | undefined;
}

export class Decoder {
  readonly architecture: Architecture;
  readonly #embedding: Float32Array;
  readonly #products = new Products();
  readonly #unembedding: StoredWeight;
  readonly #finalNorm: Float32Array;
  readonly #layers: readonly Layer[];
  #rotary: { length: number; cosines: Float32Array; sines: Float32Array } = {
    length: 0,
    cosines: new Float32Array(),
    sines: new Float32Array(),
  };

  constructor({ architecture, tensors }: Model) {
    const get = (name: string) => (tensors.get(name) as { data: Float32Array }).data;
    const maybe = (name: string) => tensors.get(name)?.data;
    this.architecture = architecture;
    this.#embedding = get(EMBEDDING);
    const unembedding = architecture.tiedEmbeddings ? this.#embedding : get(UNEMBEDDING);
    this.#unembedding = this.#products.store(unembedding, architecture.hiddenSize);
    this.#finalNorm = get(FINAL_NORM);
    this.#layers = Array.from({ length: architecture.layers }, (_, layer) => ({
      weights: byProjection((p) =>
        this.#products.store(get(layerName(layer, `${p}.weight`)), projectionShape(architecture, p)[1]),
      ) as Record<Projection, StoredWeight>,
      biases: byProjection((p) => maybe(layerName(layer, `${p}.bias`))),
      inputNorm: get(layerName(layer, "input_layernorm.weight")),
      postNorm: get(layerName(layer, "post_attention_layernorm.weight")),
      queryNorm: maybe(layerName(layer, "self_attn.q_norm.weight")),
      keyNorm: maybe(layerName(layer, "self_attn.k_norm.weight")),
    }));
  }

  /** Room for `capacity` tokens of prompt and completion. */
  newCache(capacity: number): Cache {
    const { layers, keyValueHeads, headDim } = this.architecture;
    const make = () => Array.from({ length: layers }, () => new Float32Array(capacity * keyValueHeads * headDim));
    return { capacity, length: 0, keys: make(), values: make() };
  }

  /** A cache of the same content with room for `capacity` tokens. */
  copyCache(cache: Cache, capacity: number): Cache {
    const copy = this.newCache(capacity);
    const used = cache.length * this.architecture.keyValueHeads * this.architecture.headDim;
    for (let layer = 0; layer < this.architecture.layers; layer++) {
      copy.keys[layer]?.set((cache.keys[layer] as Float32Array).subarray(0, used));
      copy.values[layer]?.set((cache.values[layer] as Float32Array).subarray(0, used));
    }
    copy.length = cache.length;
    return copy;
  }

  /** Takes the rows into their caches; the raw logits `[vocabulary]` of each row that wants them, in order. */
  forward(rows: readonly DecoderRow[]): Float32Array[] {
    const { hiddenSize, rmsEps, vocabSize } = this.architecture;
    const positions = this.#place(rows);
    const x = new Float32Array(rows.length * hiddenSize);
    rows.forEach(({ token }, row) => {
      x.set(this.#embedding.subarray(token * hiddenSize, (token + 1) * hiddenSize), row * hiddenSize);
    });
    for (let layer = 0; layer < this.#layers.length; layer++) this.#runLayer(layer, x, rows, positions);
    const wanted = rows.flatMap(({ wantsLogits }, row) => (wantsLogits ? [row] : []));
    const last = new Float32Array(wanted.length * hiddenSize);
    wanted.forEach((row, i) => {
      last.set(x.subarray(row * hiddenSize, (row + 1) * hiddenSize), i * hiddenSize);
    });
    normalise(last, this.#finalNorm, rmsEps);
    const logits = this.#products.multiply(last, this.#unembedding);
    return wanted.map((_, i) => logits.subarray(i * vocabSize, (i + 1) * vocabSize));
  }

  /** The position of each row; its cache counts it from here on. */
  #place(rows: readonly DecoderRow[]): Int32Array {
    const positions = new Int32Array(rows.length);
    rows.forEach(({ cache }, row) => {
      if (cache.length >= cache.capacity) throw new Error("a cache is full");
      positions[row] = cache.length++;
    });
    const furthest = positions.reduce((most, position) => Math.max(most, position), 0) + 1;
    if (this.#rotary.length < furthest) {
      const length = Math.min(Math.max(furthest * 2, 256), Math.max(this.architecture.contextLength, furthest));
      this.#rotary = { length, ...rotaryTables(this.architecture, length) };
    }
    return positions;
  }

  #runLayer(index: number, x: Float32Array, rows: readonly DecoderRow[], positions: Int32Array): void {
    const layer = this.#layers[index] as Layer;
    const { rmsEps } = this.architecture;
    const normed = x.slice();
    normalise(normed, layer.inputNorm, rmsEps);
    addTo(x, this.#linear(layer, "self_attn.o_proj", this.#attend(index, normed, rows, positions)));
    normed.set(x);
    normalise(normed, layer.postNorm, rmsEps);
    const gate = this.#linear(layer, "mlp.gate_proj", normed);
    const up = this.#linear(layer, "mlp.up_proj", normed);
    for (let i = 0; i < gate.length; i++) {
      const value = gate[i] as number;
      gate[i] = (value / (1 + exp(-value))) * (up[i] as number);
    }
    addTo(x, this.#linear(layer, "mlp.down_proj", gate));
  }

  /** Mixed values of all heads, `[rows, heads · headDim]`; also writes the rows' keys and values into their caches. */
  #attend(index: number, x: Float32Array, rows: readonly DecoderRow[], positions: Int32Array): Float32Array {
    const layer = this.#layers[index] as Layer;
    const { heads, keyValueHeads, headDim, rmsEps } = this.architecture;
    const queries = this.#linear(layer, "self_attn.q_proj", x);
    const keys = this.#linear(layer, "self_attn.k_proj", x);
    const values = this.#linear(layer, "self_attn.v_proj", x);
    if (layer.queryNorm) normalise(queries, layer.queryNorm, rmsEps);
    if (layer.keyNorm) normalise(keys, layer.keyNorm, rmsEps);
    this.#rotate(queries, heads, positions);
    this.#rotate(keys, keyValueHeads, positions);
    const width = keyValueHeads * headDim;
    rows.forEach(({ cache }, row) => {
      const at = (positions[row] as number) * width;
      cache.keys[index]?.set(keys.subarray(row * width, (row + 1) * width), at);
      cache.values[index]?.set(values.subarray(row * width, (row + 1) * width), at);
    });
    const mixed = new Float32Array(queries.length);
    rows.forEach(({ cache }, row) => {
      const shares = new Float64Array((positions[row] as number) + 1);
      const seenKeys = cache.keys[index] as Float32Array;
      const seenValues = cache.values[index] as Float32Array;
      for (let head = 0; head < heads; head++) {
        const offset = Math.floor((head * keyValueHeads) / heads) * headDim;
        const at = (row * heads + head) * headDim;
        softmaxScores(queries.subarray(at, at + headDim), seenKeys, offset, width, shares);
        mixValues(shares, seenValues, offset, width, mixed.subarray(at, at + headDim));
      }
    });
    return mixed;
  }

  #rotate(x: Float32Array, heads: number, positions: Int32Array): void {
    const half = this.architecture.headDim / 2;
    const { cosines, sines } = this.#rotary;
    for (let row = 0; row < positions.length; row++) {
      const table = (positions[row] as number) * half;
      for (let head = 0; head < heads; head++) {
        const at = (row * heads + head) * half * 2;
        for (let i = 0; i < half; i++) {
          const first = x[at + i] as number;
          const second = x[at + half + i] as number;
          const cosine = cosines[table + i] as number;
          const sine = sines[table + i] as number;
          x[at + i] = first * cosine - second * sine;
          x[at + half + i] = second * cosine + first * sine;
        }
      }
    }
  }

  #linear(layer: Layer, projection: Projection, x: Float32Array): Float32Array {
    const y = this.#products.multiply(x, layer.weights[projection]);
    const bias = layer.biases[projection];
    if (bias) for (let i = 0; i < y.length; i++) y[i] = (y[i] as number) + (bias[i % bias.length] as number);
    return y;
  }
}

function byProjection<T>(make: (projection: Projection) => T): Partial<Record<Projection, NonNullable<T>>> {
  const entries = PROJECTIONS.map((projection) => [projection, make(projection)] as const);
  return Object.fromEntries(entries.filter(([, value]) => value !== undefined)) as Partial<
    Record<Projection, NonNullable<T>>
  >;
}

function addTo(x: Float32Array, y: Float32Array): void {
  for (let i = 0; i < x.length; i++) x[i] = (x[i] as number) + (y[i] as number);
}

/** In place, over stretches as long as `weight`: x / sqrt(mean(x²) + eps) · weight. */
function normalise(x: Float32Array, weight: Float32Array, eps: number): void {
  const width = weight.length;
  for (let at = 0; at < x.length; at += width) {
    let sum = 0;
    for (let i = 0; i < width; i++) sum += (x[at + i] as number) * (x[at + i] as number);
    const scale = 1 / Math.sqrt(sum / width + eps);
    for (let i = 0; i < width; i++) x[at + i] = (x[at + i] as number) * scale * (weight[i] as number);
  }
}

/** softmax(query · key / sqrt(headDim)) over the cached positions, one share each. */
function softmaxScores(
  query: Float32Array,
  keys: Float32Array,
  offset: number,
  width: number,
  out: Float64Array,
): void {
  scorePositions(query, keys, offset, width, out);
  let most = Number.NEGATIVE_INFINITY;
  for (let position = 0; position < out.length; position++) most = Math.max(most, out[position] as number);
  let total = 0;
  for (let position = 0; position < out.length; position++) {
    const share = exp((out[position] as number) - most);
    out[position] = share;
    total += share;
  }
  for (let position = 0; position < out.length; position++) out[position] = (out[position] as number) / total;
}

/** Four positions at a time: their sums do not wait for each other. Each is added in the order of its dimensions. */
function scorePositions(
  query: Float32Array,
  keys: Float32Array,
  offset: number,
  width: number,
  out: Float64Array,
): void {
  const scale = 1 / Math.sqrt(query.length);
  const tiled = out.length - (out.length % 4);
  for (let position = 0; position < tiled; position += 4) {
    const at0 = position * width + offset;
    const at1 = at0 + width;
    const at2 = at1 + width;
    const at3 = at2 + width;
    let sum0 = 0;
    let sum1 = 0;
    let sum2 = 0;
    let sum3 = 0;
    for (let i = 0; i < query.length; i++) {
      const value = query[i] as number;
      sum0 += value * (keys[at0 + i] as number);
      sum1 += value * (keys[at1 + i] as number);
      sum2 += value * (keys[at2 + i] as number);
      sum3 += value * (keys[at3 + i] as number);
    }
    out[position] = sum0 * scale;
    out[position + 1] = sum1 * scale;
    out[position + 2] = sum2 * scale;
    out[position + 3] = sum3 * scale;
  }
  for (let position = tiled; position < out.length; position++) {
    let sum = 0;
    for (let i = 0; i < query.length; i++)
      sum += (query[i] as number) * (keys[position * width + offset + i] as number);
    out[position] = sum * scale;
  }
}

function mixValues(shares: Float64Array, values: Float32Array, offset: number, width: number, out: Float32Array): void {
  const sums = new Float64Array(out.length);
  for (let position = 0; position < shares.length; position++) {
    const share = shares[position] as number;
    const at = position * width + offset;
    for (let i = 0; i < sums.length; i++) sums[i] = (sums[i] as number) + share * (values[at + i] as number);
  }
  out.set(sums);
}
