/**
 * A SkyRL server as its block of the spec describes it, and the one commit of SkyRL that rlcli was written against. What follows
 * from a description is computed by pure functions: the backend's configuration (`config.ts`), the command (`command.ts`), and
 * what cannot be (`faults.ts`).
 */
import type { JsonObject } from "../../value.ts";

export const SKYRL_BACKENDS = ["jax", "fsdp", "megatron"] as const;
export type SkyrlBackend = (typeof SKYRL_BACKENDS)[number];

export const isSkyrl = (backend: string): backend is SkyrlBackend =>
  (SKYRL_BACKENDS as readonly string[]).includes(backend);

/** The commit whose settings, endpoints and start-up the code here knows. */
export const SKYRL_COMMIT = "a9564572e";

export interface SkyrlSettings {
  readonly backend: SkyrlBackend;
  /** On each node; 0 is the CPU. Undefined: all that the machine has (jax only). */
  readonly gpus?: number;
  readonly nodes: number;
  /** GPUs over which a layer is split; divides `gpus`. */
  readonly tensorParallel: number;
  /** Tokens of prompt and answer together; 0 is the model's own limit. */
  readonly maxModelLen: number;
  /** Models in training at once. */
  readonly slots: number;
  /** jax only: elsewhere an adapter's rank is its model's. */
  readonly maxLoraRank: number;
  /** Share of a GPU's memory, 0 to 1; the backend's own where absent. */
  readonly gpuMemory?: number;
  /** `host:port` of an existing Ray cluster's head, or `auto`. */
  readonly rayAddress?: string;
  /** The user's words, over what is derived. */
  readonly backendConfig: JsonObject;
}

/** Processes that jax runs as: more than one, or a given cluster, go through Ray. */
export const usesRay = ({ backend, nodes, rayAddress, backendConfig }: SkyrlSettings): boolean =>
  backend !== "jax" || nodes > 1 || rayAddress !== undefined || backendConfig.use_ray === true;
