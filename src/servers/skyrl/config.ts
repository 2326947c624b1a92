/**
 * From a server's settings to the JSON that its backend is started with (`--backend-config`). jax has a flat configuration of its
 * own; fsdp and megatron take dotted keys of SkyRL's trainer configuration. JSON types matter: `4`, not `"4"`.
 */
import type { Json, JsonObject } from "../../value.ts";
import { type SkyrlSettings, usesRay } from "./settings.ts";

/** The configuration, the user's `backend_config` last. `gpus` is the number on each node, where the settings leave it open. */
export function backendConfig(settings: SkyrlSettings, gpus: number): JsonObject {
  const derived = settings.backend === "jax" ? jaxConfig(settings, gpus) : trainerConfig(settings, gpus);
  return { ...derived, ...ownConfig(settings) };
}

/** The user's words as the backend takes them: SkyRL's trainer wants `trainer.placement…` where YAML may have groups. */
export function ownConfig({ backend, backendConfig: own }: SkyrlSettings): JsonObject {
  return backend === "jax"
    ? own
    : Object.fromEntries(Object.entries(own).flatMap(([key, value]) => dotted(key, value)));
}

function dotted(path: string, value: Json): readonly (readonly [string, Json])[] {
  const isGroup = typeof value === "object" && value !== null && !Array.isArray(value);
  return isGroup ? Object.entries(value).flatMap(([key, leaf]) => dotted(`${path}.${key}`, leaf)) : [[path, value]];
}

/** The part of the configuration that is known before the machine has been looked at. */
export function knownConfig(settings: SkyrlSettings): JsonObject {
  if (settings.gpus !== undefined) return backendConfig(settings, settings.gpus);
  const {
    fully_sharded_data_parallel_size: _,
    ray_pg_bundles: __,
    ray_actor_options: ___,
    ...known
  } = jaxConfig(settings, 0);
  return { ...known, ...settings.backendConfig };
}

/**
 * A batch of samples is split over the shards, and SkyRL pads it to a multiple of them only where its size is set; else the first
 * sample whose number they do not divide ends the engine.
 */
const SAMPLES_A_SHARD = 16;

/** One adapter more than slots: SkyRL keeps the first for the base model. */
function jaxConfig(settings: SkyrlSettings, gpus: number): JsonObject {
  const { slots, maxLoraRank, tensorParallel, nodes } = settings;
  const shards = (Math.max(gpus, 1) * nodes) / tensorParallel;
  return {
    max_lora_adapters: slots + 1,
    max_lora_rank: maxLoraRank,
    tensor_parallel_size: tensorParallel,
    fully_sharded_data_parallel_size: shards,
    ...(shards > 1 ? { sample_max_num_sequences: shards * SAMPLES_A_SHARD } : {}),
    ...(usesRay(settings) ? jaxRay(nodes, gpus) : {}),
  };
}

/** The largest rank of an adapter that the server has room for; undefined where each adapter gets what it asks for. */
export function largestRank({ backend, maxLoraRank, backendConfig: own }: SkyrlSettings): number | undefined {
  if (backend !== "jax") return undefined;
  return typeof own.max_lora_rank === "number" ? own.max_lora_rank : maxLoraRank;
}

/** One process a node, each with all of the node's GPUs. */
function jaxRay(nodes: number, gpus: number): JsonObject {
  const bundle: JsonObject = gpus === 0 ? { CPU: 1 } : { CPU: 1, GPU: gpus };
  return {
    use_ray: true,
    num_processes: nodes,
    ray_pg_bundles: Array.from({ length: nodes }, () => bundle),
    ray_actor_options: gpus === 0 ? { num_cpus: 1 } : { num_cpus: 1, num_gpus: gpus },
  };
}

const PLACEMENT = "trainer.placement";
const ENGINE = "generator.inference_engine";

/**
 * Training and sampling share the GPUs, as SkyRL does by default, unless several adapters live at once (megatron): SkyRL has that
 * only with the two apart.
 */
function trainerConfig(settings: SkyrlSettings, gpus: number): JsonObject {
  const { backend, nodes, tensorParallel, maxModelLen, gpuMemory, slots } = settings;
  const isShared = slots === 1;
  const training = isShared ? gpus : trainingGpus(gpus, tensorParallel);
  const sampling = isShared ? gpus : gpus - training;
  const optional = (key: string, value: Json | undefined) => (value === undefined ? {} : { [key]: value });
  return {
    [`${PLACEMENT}.policy_num_gpus_per_node`]: training,
    [`${PLACEMENT}.policy_num_nodes`]: nodes,
    [`${ENGINE}.num_engines`]: (sampling * nodes) / tensorParallel,
    [`${ENGINE}.tensor_parallel_size`]: tensorParallel,
    ...optional(`${ENGINE}.gpu_memory_utilization`, gpuMemory),
    ...optional(`${ENGINE}.engine_init_kwargs.max_model_len`, maxModelLen === 0 ? undefined : maxModelLen),
    ...(backend === "megatron" ? { "trainer.policy.megatron_config.tensor_model_parallel_size": tensorParallel } : {}),
    ...(isShared ? {} : severalAdapters(slots)),
  };
}

/** Half of the GPUs, in whole groups of tensor parallelism. */
export function trainingGpus(gpus: number, tensorParallel: number): number {
  return Math.floor(gpus / tensorParallel / 2) * tensorParallel;
}

function severalAdapters(slots: number): JsonObject {
  return {
    [`${PLACEMENT}.colocate_all`]: false,
    "trainer.policy.megatron_config.lora_config.merge_lora": false,
    "trainer.policy.model.lora.max_loras": slots,
    "trainer.policy.model.lora.max_cpu_loras": slots,
  };
}
