/**
 * LoRA adapters: a frozen projection W gets W x + (alpha/rank) B A x, with A `[rank, in]` and B `[out, rank]` trained
 * (Hu et al. 2021). All seven projections of every layer are adapted, embeddings never (protocol document, 8.3).
 */
import type { LoraSettings } from "../checkpoints.ts";
import type { Architecture } from "./architecture.ts";
import { streamOf, uniform } from "./random.ts";
import type { Tensor, Tensors } from "./safetensors.ts";
import { loraA, loraB } from "./transformer.ts";
import { layerName, type Model, PROJECTIONS, projectionShape } from "./weights.ts";

/** The same for every adapter, whatever a client sends. */
export const LORA_ALPHA = 32;

/** A fresh adapter: A is He-uniform from the seed (within ±√(6/in)), B zero, so that nothing changes yet. */
export function initialAdapter(architecture: Architecture, { rank, seed }: LoraSettings): Tensors {
  const tensors = new Map<string, Tensor>();
  for (let layer = 0; layer < architecture.layers; layer++)
    for (const projection of PROJECTIONS) {
      const [outputs, inputs] = projectionShape(architecture, projection);
      const name = loraA(layer, projection);
      const bound = Math.sqrt(6 / inputs);
      const stream = streamOf(name);
      const a = Float32Array.from({ length: rank * inputs }, (_, i) => (2 * uniform(seed, stream, i) - 1) * bound);
      tensors.set(name, { shape: [rank, inputs], data: a });
      tensors.set(loraB(layer, projection), { shape: [outputs, rank], data: new Float32Array(outputs * rank) });
    }
  return tensors;
}

/** The base with the adapter added in: what is sampled from. */
export function mergeAdapter(base: Model, adapter: Tensors, { rank, alpha }: LoraSettings): Model {
  const tensors = new Map(base.tensors);
  for (let layer = 0; layer < base.architecture.layers; layer++)
    for (const projection of PROJECTIONS) {
      const name = layerName(layer, `${projection}.weight`);
      const { shape, data } = base.tensors.get(name) as Tensor;
      const a = (adapter.get(loraA(layer, projection)) as Tensor).data;
      const b = (adapter.get(loraB(layer, projection)) as Tensor).data;
      tensors.set(name, { shape, data: addProduct(data, b, a, rank, alpha / rank) });
    }
  return { architecture: base.architecture, tensors };
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
