/** From a server's settings to a command line and its environment, for the pinned commit of SkyRL. Pure. */
import { dirname, join } from "node:path";
import type { JsonObject } from "../../value.ts";
import { backendConfig } from "./config.ts";
import { MARKER } from "./guard.ts";
import { type SkyrlSettings, usesRay } from "./settings.ts";

/** Where one server's things are, on the machine that it runs on. */
export interface ServerPlace {
  /** Folder of the Python environment. */
  readonly environment: string;
  readonly uv: string;
  /** What SkyRL opens: a folder or a hub name. */
  readonly model: string;
  readonly isLocalModel: boolean;
  /** Database and checkpoints lie here, and nowhere else: SkyRL's own defaults are shared by all servers. */
  readonly folder: string;
  /** On loopback, for the front door alone. */
  readonly port: number;
  /** GPUs on each node; 0 is the CPU. */
  readonly gpus: number;
  /** What its processes are known by (`guard.ts`). */
  readonly marker: string;
}

export interface LaunchCommand {
  readonly program: string;
  readonly arguments: readonly string[];
  /** Over the surroundings. */
  readonly environment: Readonly<Record<string, string>>;
  /** Put before PATH: SkyRL starts its engine as `uv`. */
  readonly path: readonly string[];
}

export const databasePath = (folder: string): string => join(folder, "skyrl.db");

export function launchCommand(settings: SkyrlSettings, place: ServerPlace): LaunchCommand {
  const options: Readonly<Record<string, string>> = {
    "base-model": place.model,
    backend: settings.backend,
    host: "127.0.0.1",
    port: String(place.port),
    "checkpoints-base": join(place.folder, "checkpoints"),
    "database-url": `sqlite:///${databasePath(place.folder)}`,
    "backend-config": JSON.stringify(withActorEnvironment(backendConfig(settings, place.gpus), place)),
  };
  return {
    program: place.uv,
    arguments: [
      // SkyRL starts its engine by reading its parent's command line, which must be uv's, with these flags.
      ...["run", "--no-sync", "--no-project", "--active", "-m", "skyrl.tinker.api"],
      ...Object.entries(options).flatMap(([name, value]) => [`--${name}`, value]),
    ],
    environment: surroundings(settings, place),
    path: [join(place.environment, "bin"), dirname(place.uv)],
  };
}

/**
 * Workers of a cluster are started by its nodes and inherit nothing from here: they are told what they need, and get the mark by
 * which those on this machine are found and ended with the server. Elsewhere the cluster itself ends them, some seconds later.
 */
function withActorEnvironment(config: JsonObject, { marker, gpus }: ServerPlace): JsonObject {
  const { use_ray: isRay, ray_actor_options: options = {} } = config as {
    use_ray?: boolean;
    ray_actor_options?: JsonObject;
  };
  if (!isRay || options.runtime_env !== undefined) return config;
  const variables = { [MARKER]: marker, ...(gpus === 0 ? { JAX_PLATFORMS: "cpu" } : {}) };
  return { ...config, ray_actor_options: { ...options, runtime_env: { env_vars: variables } } };
}

function surroundings(settings: SkyrlSettings, place: ServerPlace): Readonly<Record<string, string>> {
  const { backend, rayAddress, gpuMemory } = settings;
  return {
    VIRTUAL_ENV: place.environment,
    UV_OFFLINE: "1",
    PYTHONUNBUFFERED: "1",
    // Its log handler breaks lines at 80 columns otherwise.
    COLUMNS: "500",
    ...(place.isLocalModel ? { HF_HUB_OFFLINE: "1" } : {}),
    ...(backend === "jax" && place.gpus === 0 ? { JAX_PLATFORMS: "cpu" } : {}),
    ...(backend === "jax" && gpuMemory !== undefined ? { XLA_PYTHON_CLIENT_MEM_FRACTION: String(gpuMemory) } : {}),
    ...(rayAddress === undefined ? {} : { RAY_ADDRESS: rayAddress }),
    // Ray would make each worker an environment of its own from the driver's `uv run`.
    ...(usesRay(settings) ? { RAY_ENABLE_UV_RUN_RUNTIME_ENV: "0" } : {}),
  };
}

/** Parts of SkyRL's package that a backend needs. */
export function extrasOf(
  settings: Pick<SkyrlSettings, "backend" | "nodes" | "rayAddress" | "backendConfig">,
  gpus: number,
): readonly string[] {
  if (settings.backend !== "jax") return [settings.backend, "tinker"];
  const isRay = usesRay(settings as SkyrlSettings);
  return ["jax", "tinker", ...(gpus > 0 ? ["gpu"] : []), ...(isRay ? ["ray"] : [])];
}
