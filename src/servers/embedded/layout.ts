/**
 * How a model's weights lie in a folder, so that other programs read them: a LoRA adapter as PEFT does, a whole model as
 * transformers does. What neither of them knows, a critic's head, is in a file of its own.
 */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { LoraSettings } from "../checkpoints.ts";
import { encodeTensors, type Tensor, type Tensors } from "./safetensors.ts";
import { PROJECTIONS, VALUE_HEAD } from "./weights.ts";

/** Contents by file name, in the order they are written. */
export type ArchiveFiles = ReadonlyMap<string, Uint8Array>;

const ADAPTER_FILE = "adapter_model.safetensors";
const MODEL_FILE = "model.safetensors";
const HEAD_FILE = "value_head.safetensors";

/** PEFT wraps a causal language model twice: as its base model, and in that as the model that is adapted. */
const PEFT_PREFIX = "base_model.model.";

/** Files of a Hugging Face folder that belong to its weights wherever they go. */
const COMPANIONS = [
  "generation_config.json",
  "tokenizer.json",
  "tokenizer_config.json",
  "special_tokens_map.json",
  "added_tokens.json",
  "vocab.json",
  "merges.txt",
  "tokenizer.model",
  "chat_template.jinja",
];

/** The files of trained weights, `modelFolder` being the base's. */
export function layOut(weights: Tensors, lora: LoraSettings | null, modelFolder: string): ArchiveFiles {
  const head = weights.get(VALUE_HEAD);
  const rest: Tensors = new Map([...weights].filter(([name]) => name !== VALUE_HEAD));
  const own = lora === null ? wholeModel(rest, modelFolder) : adapter(rest, lora, modelFolder);
  return new Map([...own, ...(head ? [[HEAD_FILE, encodeTensors(new Map([[VALUE_HEAD, head]]))] as const] : [])]);
}

function adapter(weights: Tensors, lora: LoraSettings, modelFolder: string): [string, Uint8Array][] {
  const targets = PROJECTIONS.filter((projection) => (projection.startsWith("self_attn") ? lora.attention : lora.mlp));
  const config = {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: modelFolder,
    r: lora.rank,
    lora_alpha: lora.alpha,
    lora_dropout: 0,
    bias: "none",
    fan_in_fan_out: false,
    inference_mode: true,
    target_modules: [
      ...targets.map((projection) => projection.slice(projection.indexOf(".") + 1)),
      ...(lora.unembedding ? ["lm_head"] : []),
    ],
  };
  const named = [...weights].map(([name, tensor]): [string, Tensor] => [`${PEFT_PREFIX}${name}`, tensor]);
  return [
    ["adapter_config.json", encodeJson(config)],
    [ADAPTER_FILE, encodeTensors(new Map(named))],
  ];
}

/** The values are float32, whatever the base's were stored as. */
function wholeModel(weights: Tensors, modelFolder: string): [string, Uint8Array][] {
  const { torch_dtype: _, ...config } = JSON.parse(readFileSync(join(modelFolder, "config.json"), "utf8"));
  const companions = COMPANIONS.map((name) => [name, join(modelFolder, name)] as const)
    .filter(([, path]) => existsSync(path))
    .map(([name, path]): [string, Uint8Array] => [name, readFileSync(path)]);
  return [
    ["config.json", encodeJson({ ...config, dtype: "float32" })],
    ...companions,
    [MODEL_FILE, encodeTensors(weights)],
  ];
}

function encodeJson(value: unknown): Uint8Array {
  return Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
}

/** Which files hold tensors; `role` tells whether there is a head. */
export function tensorFiles(lora: LoraSettings | null, hasHead: boolean): readonly string[] {
  return [lora === null ? MODEL_FILE : ADAPTER_FILE, ...(hasHead ? [HEAD_FILE] : [])];
}

/** Tensors as they are called here, from those of the files. */
export function ownNames(tensors: Tensors): Tensors {
  const own = (name: string) => (name.startsWith(PEFT_PREFIX) ? name.slice(PEFT_PREFIX.length) : name);
  return new Map([...tensors].map(([name, tensor]): [string, Tensor] => [own(name), tensor]));
}
