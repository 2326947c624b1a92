/**
 * LoRA adapters: a frozen projection W gets W x + (alpha/rank) B A x, with A `[rank, in]` and B `[out, rank]` trained
 * (Hu et al. 2021). Which maps are adapted is the client's choice: the attention's, the MLP's, the unembedding.
 */
import type { LoraSettings } from "../checkpoints.ts";
import type { Architecture } from "./architecture.ts";
import { streamOf, uniform } from "./random.ts";
import type { Tensor, Tensors } from "./safetensors.ts";
import { loraA, loraB, UNEMBEDDING_A, UNEMBEDDING_B } from "./transformer.ts";
import { EMBEDDING, layerName, type Model, PROJECTIONS, projectionShape, UNEMBEDDING } from "./weights.ts";

/** The same for every adapter, whatever a client sends. */
export const LORA_ALPHA = 32;

interface AdaptedMap {
  /** Of the frozen weight. */
  readonly weight: string;
  readonly a: string;
  readonly b: string;
  readonly inputs: number;
  readonly outputs: number;
}

/** The maps that have an adapter, in a fixed order. */
function adaptedMaps(architecture: Architecture, { attention, mlp, unembedding }: LoraSettings): AdaptedMap[] {
  const { layers, hiddenSize, vocabSize } = architecture;
  const chosen = PROJECTIONS.filter((projection) => (projection.startsWith("self_attn") ? attention : mlp));
  const maps = Array.from({ length: layers }, (_, layer) =>
    chosen.map((projection) => {
      const [outputs, inputs] = projectionShape(architecture, projection);
      const weight = layerName(layer, `${projection}.weight`);
      return { weight, a: loraA(layer, projection), b: loraB(layer, projection), inputs, outputs };
    }),
  ).flat();
  const last = { weight: UNEMBEDDING, a: UNEMBEDDING_A, b: UNEMBEDDING_B, inputs: hiddenSize, outputs: vocabSize };
  return unembedding ? [...maps, last] : maps;
}

/** A fresh adapter: A is He-uniform from the seed (within ±√(6/in)), B zero, so that nothing changes yet. */
export function initialAdapter(architecture: Architecture, lora: LoraSettings): Tensors {
  const { rank, seed } = lora;
  const tensors = new Map<string, Tensor>();
  for (const { a, b, inputs, outputs } of adaptedMaps(architecture, lora)) {
    const bound = Math.sqrt(6 / inputs);
    const stream = streamOf(a);
    const values = Float32Array.from({ length: rank * inputs }, (_, i) => (2 * uniform(seed, stream, i) - 1) * bound);
    tensors.set(a, { shape: [rank, inputs], data: values });
    tensors.set(b, { shape: [outputs, rank], data: new Float32Array(outputs * rank) });
  }
  return tensors;
}

/** The base with the adapter added in: what is sampled from. An adapted unembedding is tied no more. */
export function mergeAdapter(base: Model, adapter: Tensors, lora: LoraSettings): Model {
  const { architecture } = base;
  const tensors = new Map(base.tensors);
  for (const { weight, a, b } of adaptedMaps(architecture, lora)) {
    const isTied = weight === UNEMBEDDING && architecture.tiedEmbeddings;
    const { shape, data } = base.tensors.get(isTied ? EMBEDDING : weight) as Tensor;
    const [left, right] = [adapter.get(b) as Tensor, adapter.get(a) as Tensor];
    tensors.set(weight, { shape, data: addProduct(data, left.data, right.data, lora.rank, lora.alpha / lora.rank) });
  }
  const tiedEmbeddings = architecture.tiedEmbeddings && !lora.unembedding;
  return { architecture: { ...architecture, tiedEmbeddings }, tensors };
}

/** w + scale · b a for b `[out, rank]` and a `[rank, in]`. */
function addProduct(w: Float32Array, b: Float32Array, a: Float32Array, rank: number, scale: number): Float32Array {
  const inputs = a.length / rank;
  const out = new Float32Array(w.length);
  for (let i = 0; i < w.length; i++) {
    const row = Math.floor(i / inputs);
    const column = i % inputs;
    let sum = 0;
    for (let r = 0; r < rank; r++) sum += (b[row * rank + r] as number) * (a[r * inputs + column] as number);
    out[i] = (w[i] as number) + scale * sum;
  }
  return out;
}
