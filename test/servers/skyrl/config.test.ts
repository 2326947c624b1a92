/** What SkyRL is started with, and what is refused before. Keys are held against the pinned commit's own classes in launch.test.ts. */
import { describe, expect, test } from "vitest";
import { extrasOf, launchCommand } from "../../../src/servers/skyrl/command.ts";
import { backendConfig, knownConfig } from "../../../src/servers/skyrl/config.ts";
import { serverFaults } from "../../../src/servers/skyrl/faults.ts";
import type { SkyrlSettings } from "../../../src/servers/skyrl/settings.ts";

const settings = (changes: Partial<SkyrlSettings>): SkyrlSettings => ({
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
const ray = { rayAddress: "10.0.0.1:6379" };

const CONFIGS: Record<string, { of: Partial<SkyrlSettings>; is: object }> = {
  "fsdp 1x8": { of: {}, is: { ...placement(8, 1), ...engines(8, 1) } },
  "fsdp 1x8, tp 2": { of: { tensorParallel: 2 }, is: { ...placement(8, 1), ...engines(4, 2) } },
  "fsdp 1x8, tp 4": { of: { tensorParallel: 4 }, is: { ...placement(8, 1), ...engines(2, 4) } },
  "fsdp 2x8": { of: { nodes: 2, ...ray }, is: { ...placement(8, 2), ...engines(16, 1) } },
  "fsdp 2x8, tp 4": { of: { nodes: 2, tensorParallel: 4, ...ray }, is: { ...placement(8, 2), ...engines(4, 4) } },
  "fsdp, share of memory, native context": {
    of: { gpus: 1, gpuMemory: 0.6, maxModelLen: 0 },
    is: {
      ...placement(1, 1),
      "generator.inference_engine.num_engines": 1,
      "generator.inference_engine.tensor_parallel_size": 1,
      "generator.inference_engine.gpu_memory_utilization": 0.6,
    },
  },
  "megatron 1x8, tp 2": {
    of: { backend: "megatron", tensorParallel: 2 },
    is: { ...placement(8, 1), ...engines(4, 2), "trainer.policy.megatron_config.tensor_model_parallel_size": 2 },
  },
  "megatron 2x8, tp 4": {
    of: { backend: "megatron", tensorParallel: 4, nodes: 2, ...ray },
    is: { ...placement(8, 2), ...engines(4, 4), "trainer.policy.megatron_config.tensor_model_parallel_size": 4 },
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

test.each(Object.entries(CONFIGS))("%s", (_, { of, is }) => {
  const given = settings(of);
  expect(backendConfig(given, given.gpus!)).toEqual(is);
  expect(serverFaults(given)).toEqual([]);
});

test("before the machine has been looked at, what depends on its GPUs is left open", () => {
  const { gpus: _, ...open } = settings({ backend: "jax", slots: 3 });
  expect(knownConfig(open)).toEqual({ max_lora_adapters: 4, max_lora_rank: 32, tensor_parallel_size: 1 });
});

const FAULTS: Record<string, { of: Partial<SkyrlSettings>; field: string; says: RegExp }> = {
  "tensor parallelism that does not divide": {
    of: { tensorParallel: 3 },
    field: "tensor_parallel",
    says: /8 GPUs a node cannot be divided/,
  },
  "tensor parallelism over one GPU": {
    of: { gpus: 1, tensorParallel: 2 },
    field: "tensor_parallel",
    says: /1 GPU a node/,
  },
  "tensor parallelism on a CPU": {
    of: { backend: "jax", gpus: 0, tensorParallel: 2 },
    field: "tensor_parallel",
    says: /cannot be divided/,
  },
  "no GPU": { of: { gpus: 0 }, field: "gpus", says: /fsdp server needs GPUs/ },
  "nodes without a cluster": { of: { nodes: 2 }, field: "nodes", says: /`ray start --head --port 6379`/ },
  "too few GPUs for several adapters": {
    of: { backend: "megatron", gpus: 2, tensorParallel: 2, slots: 2 },
    field: "slots",
    says: /at least 4 GPUs/,
  },
  "memory of no GPU": { of: { backend: "jax", gpus: 0, gpuMemory: 0.5 }, field: "gpu_memory", says: /no GPU memory/ },
  "batches that the shards do not divide": {
    of: { backend: "jax", gpus: 4, backendConfig: { sample_max_num_sequences: 6 } },
    field: "backend_config",
    says: /Choose a multiple of 4/,
  },
  "a key that jax does not have": {
    of: { backend: "jax", backendConfig: { max_lora_adaptors: 3 } },
    field: "backend_config",
    says: /Did you mean `max_lora_adapters`/,
  },
  "a key that the trainer does not have": {
    of: { backendConfig: { max_lora_adapters: 3 } },
    field: "backend_config",
    says: /is no setting of SkyRL's trainer/,
  },
  "a key that would be overwritten": {
    of: { backendConfig: { "trainer.policy.model.lora.rank": 4 } },
    field: "backend_config",
    says: /`lora_rank` decides it/,
  },
};

test.each(Object.entries(FAULTS))("refused: %s", (_, { of, field, says }) => {
  const faults = serverFaults(settings(of));
  expect(faults.map((fault) => fault.field)).toEqual([field]);
  expect(faults[0]!.detail).toMatch(says);
});

test("tensor parallelism needs the number of GPUs to be said", () => {
  const { gpus: _, ...open } = settings({ backend: "jax", tensorParallel: 2 });
  expect(serverFaults(open).map(({ field }) => field)).toEqual(["tensor_parallel"]);
});

describe("a command", () => {
  const place = {
    environment: "/data/venv",
    uv: "/opt/uv/uv",
    model: "/models/tiny",
    isLocalModel: true,
    folder: "/project/.rlcli/servers/box",
    port: 41234,
    gpus: 0,
  };

  test("has a database and checkpoints of its own, and listens on loopback", () => {
    const {
      program,
      arguments: args,
      environment,
      path,
    } = launchCommand(settings({ backend: "jax", gpus: 0, slots: 1 }), place);
    expect([program, ...args]).toEqual([
      ...["/opt/uv/uv", "run", "--no-sync", "--no-project", "--active", "-m", "skyrl.tinker.api"],
      ...["--base-model", "/models/tiny", "--backend", "jax", "--host", "127.0.0.1", "--port", "41234"],
      ...["--checkpoints-base", "/project/.rlcli/servers/box/checkpoints"],
      ...["--database-url", "sqlite:////project/.rlcli/servers/box/skyrl.db"],
      "--backend-config",
      '{"max_lora_adapters":2,"max_lora_rank":32,"tensor_parallel_size":1,"fully_sharded_data_parallel_size":1}',
    ]);
    expect(environment).toMatchObject({ VIRTUAL_ENV: "/data/venv", JAX_PLATFORMS: "cpu", HF_HUB_OFFLINE: "1" });
    expect(path).toEqual(["/data/venv/bin", "/opt/uv"]);
  });

  test("joins a cluster, and shares a GPU's memory", () => {
    const given = settings({ backend: "jax", nodes: 2, gpuMemory: 0.5, ...ray });
    const { environment } = launchCommand(given, { ...place, gpus: 8, isLocalModel: false });
    expect(environment).toMatchObject({ RAY_ADDRESS: "10.0.0.1:6379", XLA_PYTHON_CLIENT_MEM_FRACTION: "0.5" });
    expect(environment).not.toHaveProperty("JAX_PLATFORMS");
    expect(environment).not.toHaveProperty("HF_HUB_OFFLINE");
  });

  test.each([
    { of: { backend: "jax", gpus: 0 }, extras: ["jax", "tinker"] },
    { of: { backend: "jax" }, extras: ["jax", "tinker", "gpu"] },
    { of: { backend: "jax", gpus: 0, nodes: 2, ...ray }, extras: ["jax", "tinker", "ray"] },
    { of: { backend: "fsdp" }, extras: ["fsdp", "tinker"] },
    { of: { backend: "megatron" }, extras: ["megatron", "tinker"] },
  ] as const)("needs $extras", ({ of, extras }) => {
    const given = settings(of);
    expect(extrasOf(given, given.gpus!)).toEqual(extras);
  });
});
