/** Which tensors a model has, by their Hugging Face names, and reading them from a folder with every shape checked. */
import { fail } from "../../diagnostic.ts";
import { type Architecture, readArchitecture } from "./architecture.ts";
import { readModelTensors, type Tensor, type Tensors } from "./safetensors.ts";

/** A model in plain memory, as read or as snapshot of training. Immutable once made. */
export interface Model {
  readonly architecture: Architecture;
  readonly tensors: Tensors;
}

/** The linear maps of a layer, in the order they are applied. */
export const PROJECTIONS = [
  "self_attn.q_proj",
  "self_attn.k_proj",
  "self_attn.v_proj",
  "self_attn.o_proj",
  "mlp.gate_proj",
  "mlp.up_proj",
  "mlp.down_proj",
] as const;
export type Projection = (typeof PROJECTIONS)[number];

export const EMBEDDING = "model.embed_tokens.weight";
export const FINAL_NORM = "model.norm.weight";
export const UNEMBEDDING = "lm_head.weight";
/** `[1, hidden]`: a critic's only, beside the model's own tensors. */
export const VALUE_HEAD = "value_head.weight";

export function layerName(layer: number, part: string): string {
  return `model.layers.${layer}.${part}`;
}

/** `[out, in]` of a projection's weight. */
export function projectionShape(a: Architecture, projection: Projection): readonly [number, number] {
  const query = a.heads * a.headDim;
  const keyValue = a.keyValueHeads * a.headDim;
  switch (projection) {
    case "self_attn.q_proj":
      return [query, a.hiddenSize];
    case "self_attn.k_proj":
    case "self_attn.v_proj":
      return [keyValue, a.hiddenSize];
    case "self_attn.o_proj":
      return [a.hiddenSize, query];
    case "mlp.gate_proj":
    case "mlp.up_proj":
      return [a.intermediateSize, a.hiddenSize];
    case "mlp.down_proj":
      return [a.hiddenSize, a.intermediateSize];
    default:
      return projection satisfies never;
  }
}

/** Every tensor of the model and its shape, in a fixed order. */
export function tensorShapes(a: Architecture): ReadonlyMap<string, readonly number[]> {
  const shapes = new Map<string, readonly number[]>([[EMBEDDING, [a.vocabSize, a.hiddenSize]]]);
  for (let layer = 0; layer < a.layers; layer++) {
    shapes.set(layerName(layer, "input_layernorm.weight"), [a.hiddenSize]);
    shapes.set(layerName(layer, "post_attention_layernorm.weight"), [a.hiddenSize]);
    for (const projection of PROJECTIONS) {
      const shape = projectionShape(a, projection);
      shapes.set(layerName(layer, `${projection}.weight`), shape);
      const biased = projection.startsWith("self_attn") ? a.attentionBias : a.mlpBias;
      if (biased) shapes.set(layerName(layer, `${projection}.bias`), [shape[0]]);
    }
    if (a.family === "qwen3") {
      shapes.set(layerName(layer, "self_attn.q_norm.weight"), [a.headDim]);
      shapes.set(layerName(layer, "self_attn.k_norm.weight"), [a.headDim]);
    }
  }
  shapes.set(FINAL_NORM, [a.hiddenSize]);
  if (!a.tiedEmbeddings) shapes.set(UNEMBEDDING, [a.vocabSize, a.hiddenSize]);
  return shapes;
}

export function parameterCount(a: Architecture): number {
  let count = 0;
  for (const shape of tensorShapes(a).values()) count += shape.reduce((product, side) => product * side, 1);
  return count;
}

/** Reads a model folder. Throws RL5001 or RL5002 naming what is wrong. */
export function readModel(folder: string): Model {
  const architecture = readArchitecture(folder);
  return { architecture, tensors: checkTensors(architecture, readModelTensors(folder), folder) };
}

/** Exactly the model's tensors, in the fixed order; `folder` only names the model in messages. */
function checkTensors(architecture: Architecture, found: Tensors, folder: string): Tensors {
  const tensors = new Map<string, Tensor>();
  for (const [name, shape] of tensorShapes(architecture)) {
    const tensor = found.get(name);
    if (tensor === undefined) fail("RL5002", `${folder} has no tensor ${name}, which its config.json calls for.`);
    if (tensor.shape.length !== shape.length || tensor.shape.some((side, i) => side !== shape[i]))
      fail(
        "RL5002",
        `${folder}: ${name} has shape [${tensor.shape.join(", ")}], config.json calls for [${shape.join(", ")}].`,
      );
    if (!tensor.data.every(Number.isFinite)) fail("RL5002", `${folder}: ${name} holds values that are not finite.`);
    tensors.set(name, tensor);
  }
  return tensors;
}
