/** What SkyRL is started with, and what is refused before. Keys are held against SkyRL's own classes in test/counterparts. */
import { describe, expect, test } from "vitest";
import { extrasOf, launchCommand } from "../../../src/servers/skyrl/command.ts";
import { backendConfig, knownConfig } from "../../../src/servers/skyrl/config.ts";
import { serverFaults } from "../../../src/servers/skyrl/faults.ts";
import type { SkyrlSettings } from "../../../src/servers/skyrl/settings.ts";
import { CONFIGS, ray, settings } from "./configs.ts";

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
    marker: "/project/.rlcli/servers/box",
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

  test("tells the workers of a cluster what they do not inherit, and marks them", () => {
    const given = settings({ backend: "jax", gpus: 0, nodes: 2, ...ray });
    const { arguments: args } = launchCommand(given, place);
    const { ray_actor_options: options } = JSON.parse(args.at(-1)!);
    expect(options).toEqual({
      num_cpus: 1,
      runtime_env: { env_vars: { RLCLI_SERVER: "/project/.rlcli/servers/box", JAX_PLATFORMS: "cpu" } },
    });
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
