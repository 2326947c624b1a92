/** Servers and the configuration that each is started with. */
import type { SkyrlSettings } from "../../../src/servers/skyrl/settings.ts";

export const settings = (changes: Partial<SkyrlSettings>): SkyrlSettings => ({
  backend: "fsdp",
  gpus: 8,
  nodes: 1,
  tensorParallel: 1,
  maxModelLen: 16384,
  slots: 1,
  maxLoraRank: 32,
  backendConfig: {},
  ...changes,
});

const placement = (perNode: number, nodes: number) => ({
  "trainer.placement.policy_num_gpus_per_node": perNode,
  "trainer.placement.policy_num_nodes": nodes,
});
const engines = (count: number, tensorParallel: number) => ({
  "generator.inference_engine.num_engines": count,
  "generator.inference_engine.tensor_parallel_size": tensorParallel,
  "generator.inference_engine.engine_init_kwargs.max_model_len": 16384,
});
export const ray = { rayAddress: "10.0.0.1:6379" };

interface Case {
  readonly of: Partial<SkyrlSettings>;
  readonly is: object;
}

/** One run on all of a box of eight GPUs, or of two: engines on all of them beside the trainer. */
function whole(nodes: number, tensorParallel: number): [name: string, Case][] {
  const of = { tensorParallel, nodes, ...(nodes > 1 ? ray : {}) };
  const is = { ...placement(8, nodes), ...engines((8 * nodes) / tensorParallel, tensorParallel) };
  const trainer = { "trainer.policy.megatron_config.tensor_model_parallel_size": tensorParallel };
  const name = `${nodes}x8, tp ${tensorParallel}`;
  return [
    [`fsdp ${name}`, { of, is }],
    [`megatron ${name}`, { of: { ...of, backend: "megatron" }, is: { ...is, ...trainer } }],
  ];
}

export const CONFIGS: Record<string, Case> = {
  ...Object.fromEntries([1, 2].flatMap((nodes) => [1, 2, 4].flatMap((tensorParallel) => whole(nodes, tensorParallel)))),
  "fsdp, share of memory, native context": {
    of: { gpus: 1, gpuMemory: 0.6, maxModelLen: 0 },
    is: {
      ...placement(1, 1),
      "generator.inference_engine.num_engines": 1,
      "generator.inference_engine.tensor_parallel_size": 1,
      "generator.inference_engine.gpu_memory_utilization": 0.6,
    },
  },
  "megatron 1x8, four adapters: half trains, half samples": {
    of: { backend: "megatron", tensorParallel: 2, slots: 4 },
    is: {
      ...placement(4, 1),
      ...engines(2, 2),
      "trainer.policy.megatron_config.tensor_model_parallel_size": 2,
      "trainer.placement.colocate_all": false,
      "trainer.policy.megatron_config.lora_config.merge_lora": false,
      "trainer.policy.model.lora.max_loras": 4,
      "trainer.policy.model.lora.max_cpu_loras": 4,
    },
  },
  "jax on the CPU": {
    of: { backend: "jax", gpus: 0, slots: 31 },
    is: { max_lora_adapters: 32, max_lora_rank: 32, tensor_parallel_size: 1, fully_sharded_data_parallel_size: 1 },
  },
  "jax 1x8, tp 2": {
    of: { backend: "jax", tensorParallel: 2, slots: 7, maxLoraRank: 64 },
    is: {
      max_lora_adapters: 8,
      max_lora_rank: 64,
      tensor_parallel_size: 2,
      fully_sharded_data_parallel_size: 4,
      sample_max_num_sequences: 64,
    },
  },
  "jax over two CPU processes of a cluster": {
    of: { backend: "jax", gpus: 0, nodes: 2, slots: 3, ...ray },
    is: {
      max_lora_adapters: 4,
      max_lora_rank: 32,
      tensor_parallel_size: 1,
      fully_sharded_data_parallel_size: 2,
      sample_max_num_sequences: 32,
      use_ray: true,
      num_processes: 2,
      ray_pg_bundles: [{ CPU: 1 }, { CPU: 1 }],
      ray_actor_options: { num_cpus: 1 },
    },
  },
  "jax 2x8": {
    of: { backend: "jax", nodes: 2, slots: 3, ...ray },
    is: {
      max_lora_adapters: 4,
      max_lora_rank: 32,
      tensor_parallel_size: 1,
      fully_sharded_data_parallel_size: 16,
      sample_max_num_sequences: 256,
      use_ray: true,
      num_processes: 2,
      ray_pg_bundles: [
        { CPU: 1, GPU: 8 },
        { CPU: 1, GPU: 8 },
      ],
      ray_actor_options: { num_cpus: 1, num_gpus: 8 },
    },
  },
  "the user's words last, groups as dotted keys": {
    of: {
      gpus: 1,
      backendConfig: {
        generator: { inference_engine: { num_engines: 3 } },
        "trainer.micro_train_batch_size_per_gpu": 4,
        "trainer.policy.fsdp_config": { cpu_offload: true },
      },
    },
    is: {
      ...placement(1, 1),
      ...engines(1, 1),
      "generator.inference_engine.num_engines": 3,
      "trainer.micro_train_batch_size_per_gpu": 4,
      "trainer.policy.fsdp_config.cpu_offload": true,
    },
  },
};
