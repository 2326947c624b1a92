/**
 * What cannot be, or would be taken and not used: found when a plan is made, not by a crash on eight GPUs. Each fault names the
 * field of the server's block where it can be mended.
 */
import { didYouMean } from "../../suggest.ts";
import { backendConfig, ownConfig, trainingGpus } from "./config.ts";
import type { SkyrlSettings } from "./settings.ts";

export interface ServerFault {
  /** Path in the server's block. */
  readonly field: string;
  readonly detail: string;
}

export function serverFaults(settings: SkyrlSettings): readonly ServerFault[] {
  return [...deviceFaults(settings), ...nodeFaults(settings), ...configFaults(settings), ...paddingFaults(settings)];
}

function deviceFaults({ backend, gpus, tensorParallel, slots, gpuMemory }: SkyrlSettings): readonly ServerFault[] {
  const faults: ServerFault[] = [];
  if (gpus === 0 && backend !== "jax")
    faults.push({
      field: "gpus",
      detail: `A ${backend} server needs GPUs. Give it at least one, or take \`backend: jax\`, which also runs on a CPU.`,
    });
  if (gpus === undefined && tensorParallel > 1)
    faults.push({
      field: "tensor_parallel",
      detail: `Whether ${tensorParallel} divides the GPUs cannot be told without their number. Say \`gpus\` as well.`,
    });
  const devices = Math.max(gpus ?? tensorParallel, 1);
  if (devices % tensorParallel !== 0)
    faults.push({
      field: "tensor_parallel",
      detail: `Each layer is to be split over ${tensorParallel} GPUs, but ${devices} GPU${devices === 1 ? "" : "s"} a node cannot be divided by that. Choose a divisor of ${devices}.`,
    });
  else if (backend === "megatron" && slots > 1 && trainingGpus(gpus ?? 1, tensorParallel) === 0)
    faults.push({
      field: "slots",
      detail: `Several models at once (slots: ${slots}) train and sample on GPUs of their own, so each needs ${tensorParallel} of the ${devices} here. Take at least ${2 * tensorParallel} GPUs, or \`slots: 1\`.`,
    });
  if (gpus === 0 && gpuMemory !== undefined)
    faults.push({ field: "gpu_memory", detail: "On the CPU there is no GPU memory to share. Leave gpu_memory out." });
  return faults;
}

function nodeFaults({ nodes, rayAddress }: SkyrlSettings): readonly ServerFault[] {
  if (nodes === 1 || rayAddress !== undefined) return [];
  return [
    {
      field: "nodes",
      detail: `A server over ${nodes} nodes needs a Ray cluster that joins them. Run \`ray start --head --port 6379\` on one node and \`ray start --address THAT_NODE:6379\` on the others, run rlcli on one of them, and write \`ray: { address: THAT_NODE:6379 }\`.`,
    },
  ];
}

function paddingFaults(settings: SkyrlSettings): readonly ServerFault[] {
  if (settings.backend !== "jax" || settings.gpus === undefined) return [];
  const { fully_sharded_data_parallel_size: shards, sample_max_num_sequences: samples } = backendConfig(
    settings,
    settings.gpus,
  );
  if (typeof shards !== "number" || typeof samples !== "number" || !(shards > 1) || samples % shards === 0) return [];
  const detail = `Batches of ${samples} samples (sample_max_num_sequences) cannot be split over ${shards} shards, which ends SkyRL's engine. Choose a multiple of ${shards}.`;
  return [{ field: "backend_config", detail }];
}

/** JaxBackendConfig of the pinned commit; SkyRL refuses all others. */
const JAX_KEYS = [
  "max_lora_adapters",
  "max_lora_rank",
  "tensor_parallel_size",
  "expert_parallel_size",
  "fully_sharded_data_parallel_size",
  "train_micro_batch_size",
  "sample_max_num_sequences",
  "enforce_eager",
  "shard_attention_heads",
  "gradient_checkpointing",
  "mhc_expansion_rate",
  "loss_chunk_size",
  "coordinator_address",
  "num_processes",
  "use_ray",
  "ray_actor_options",
  "ray_pg_bundles",
] as const;

/** Keys that SkyRL's backend sets itself over whatever is given (`_build_skyrl_train_config`), and who decides them instead. */
const OVERRIDDEN: Readonly<Record<string, string>> = {
  "trainer.strategy": "`backend` decides it",
  "trainer.policy.model.path": "`model` decides it",
  "trainer.critic.model.path": "`model` decides it",
  "trainer.policy.model.lora.rank": "each run's `lora_rank` decides it",
  "trainer.policy.model.lora.alpha": "SkyRL chooses it for each model",
  "trainer.policy.optimizer_config.scheduler": "a run's `schedule` decides it",
  "trainer.policy.optimizer_config.num_warmup_steps": "a run's `schedule` decides it",
  "trainer.algorithm.use_kl_loss": "SkyRL turns it off; a run has `kl_penalty`",
};

/** Where SkyRL's trainer configuration begins. */
const ROOTS = ["trainer", "generator", "environment", "data"];
const OWN_KEYS = ["keep_runtime_warm_on_last_unload"];

function configFaults(settings: SkyrlSettings): readonly ServerFault[] {
  return Object.keys(ownConfig(settings)).flatMap((key) => {
    const detail = settings.backend === "jax" ? jaxKeyFault(key) : trainerKeyFault(key);
    return detail === undefined ? [] : [{ field: "backend_config", detail }];
  });
}

function jaxKeyFault(key: string): string | undefined {
  if ((JAX_KEYS as readonly string[]).includes(key)) return undefined;
  return `SkyRL's jax backend has no setting \`${key}\`.${didYouMean(key, JAX_KEYS)}`;
}

function trainerKeyFault(key: string): string | undefined {
  if (OVERRIDDEN[key] !== undefined) return `\`${key}\` would be overwritten: ${OVERRIDDEN[key]}.`;
  const isKnown = OWN_KEYS.includes(key) || (key.includes(".") && ROOTS.includes(key.split(".")[0] as string));
  return isKnown
    ? undefined
    : `\`${key}\` is no setting of SkyRL's trainer: its keys start with ${ROOTS.map((root) => `\`${root}.\``).join(", ")}.${didYouMean(key, OWN_KEYS)}`;
}
