/** The block of a SkyRL server: what it says as plain data, what of it cannot be, and the running server that follows from it. */
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { nameOf } from "../address.ts";
import { diagnostic, RlcliError } from "../diagnostic.ts";
import { digestJson, shortDigest } from "../digest.ts";
import type { ProjectContext } from "../kind.ts";
import { isBuiltinModel } from "../servers/builtin.ts";
import { type EnsureControl, ensureServer } from "../servers/ensure.ts";
import type { ServerRuntime } from "../servers/runtime.ts";
import { extrasOf } from "../servers/skyrl/command.ts";
import { ensureEnvironment, type PythonEnvironment } from "../servers/skyrl/environment.ts";
import { type ServerFault, serverFaults } from "../servers/skyrl/faults.ts";
import { countGpus } from "../servers/skyrl/gpus.ts";
import type { SkyrlOrder } from "../servers/skyrl/order.ts";
import { type PythonSettings, recipeOf } from "../servers/skyrl/recipe.ts";
import type { SkyrlBackend, SkyrlSettings } from "../servers/skyrl/settings.ts";
import type { SpecNode } from "../spec.ts";
import type { JsonObject } from "../value.ts";
import { numberAt, stringAt } from "./attributes.ts";
import type { ServerSettings } from "./connect.ts";
import { localFolder, modelFolder } from "./model.ts";

/** What such a block says beyond what all servers have. */
export interface SkyrlBlock {
  readonly settings: SkyrlSettings;
  readonly python: PythonSettings;
  readonly auth?: "token" | "none";
  readonly tls?: { readonly certificate: string; readonly key: string };
  readonly restarts: boolean;
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|::1)$/;
export const isLoopback = (host: string): boolean => LOOPBACK.test(host);

/** Whether a `host` names another machine to run on, rather than what to listen on here. */
export const isRemote = (host: string | undefined): boolean => host?.includes("@") ?? false;

const DEFAULTS = { host: "127.0.0.1", port: 8000, idleTimeoutSeconds: 600 } as const;

/** A server may be starting again after a crash, with a model that takes long to load. */
const HEALTH_TIMEOUT_MS = 900_000;

export function skyrlBlock(node: SpecNode, backend: SkyrlBackend): SkyrlBlock {
  const optional = <K extends string, V>(key: K, value: V | undefined) =>
    (value === undefined ? {} : { [key]: value }) as Partial<Record<K, V>>;
  const certificate = stringAt(node, "tls.certificate");
  const key = stringAt(node, "tls.key");
  return {
    settings: {
      backend,
      nodes: numberAt(node, "nodes") ?? 1,
      tensorParallel: numberAt(node, "tensor_parallel") ?? 1,
      maxModelLen: numberAt(node, "max_model_len") ?? 0,
      slots: numberAt(node, "slots") ?? 1,
      maxLoraRank: numberAt(node, "max_lora_rank") ?? 32,
      backendConfig: (node.body.backend_config ?? {}) as JsonObject,
      ...optional("gpus", numberAt(node, "gpus")),
      ...optional("gpuMemory", numberAt(node, "gpu_memory")),
      ...optional("rayAddress", stringAt(node, "ray.address")),
    },
    python: (node.body.python ?? {}) as PythonSettings,
    restarts: stringAt(node, "restart") !== "never",
    ...optional("auth", stringAt(node, "auth") as SkyrlBlock["auth"]),
    ...(certificate === undefined || key === undefined ? {} : { tls: { certificate, key } }),
  };
}

/** What such a block asks for that cannot be. */
export function skyrlFaults({ skyrl, model, host = DEFAULTS.host }: ServerSettings): readonly ServerFault[] {
  if (!skyrl) return [];
  if (isRemote(host)) return [...serverFaults(skyrl.settings), ...remoteFaults(model, host)];
  const isOpen = skyrl.auth === "none" && !isLoopback(host);
  const detail = `Beyond loopback a server asks for its token, so \`auth: none\` cannot be had with \`host: ${host}\`. Leave \`auth\` out, or listen on 127.0.0.1.`;
  return [...serverFaults(skyrl.settings), ...(isOpen ? [{ field: "auth", detail }] : [])];
}

function remoteFaults(model: string, host: string): readonly ServerFault[] {
  if (!isBuiltinModel(model) && !/^[.~]/.test(model)) return [];
  const detail = `\`${model}\` is a folder of this machine, and the server runs on ${host}. Give a hub name, or the absolute path of a folder that is the same on both.`;
  return [{ field: "model", detail }];
}

/** What SkyRL and its clients call the model: the folder where it is one here, else the hub's name. */
export async function servedModel(model: string, project: ProjectContext): Promise<string> {
  return isBuiltinModel(model) || localFolder(model, project) ? modelFolder(model, project) : model;
}

/** The running server of a block, started if there is none. */
export async function ensureSkyrl(
  server: ServerSettings & { readonly skyrl: SkyrlBlock },
  project: ProjectContext,
  folder: string,
  control: EnsureControl,
): Promise<ServerRuntime> {
  const { skyrl, address } = server;
  const faults = skyrlFaults(server);
  if (faults.length > 0) throw new RlcliError(faults.map(({ detail }) => diagnostic("RL5020", detail, { address })));
  const served = await servedModel(server.model, project);
  const described = describe(server, served, project, folder);
  const what = `${skyrl.settings.backend} server`;
  return ensureServer(
    {
      what,
      folder,
      healthTimeoutMs: HEALTH_TIMEOUT_MS,
      differs: (found) => (found.digest === described.digest ? undefined : "with other settings"),
      async prepare() {
        const place = await placeOf(server, project, control);
        const order: SkyrlOrder = { ...described, ...place };
        return { entry: "skyrl-server", what, folder, order };
      },
    },
    control,
  );
}

/** The Python environment of a block, made if there is none, for the GPUs that it takes or that are here. */
export async function ensurePython(
  { settings, python }: Pick<SkyrlBlock, "settings" | "python">,
  { env }: Pick<ProjectContext, "env">,
  control: EnsureControl,
): Promise<PythonEnvironment & { readonly gpus: number }> {
  const gpus = settings.gpus ?? (await countGpus());
  const recipe = recipeOf(extrasOf(settings, gpus), python, env);
  return { ...(await ensureEnvironment(recipe, { env, ...control })), gpus };
}

/** Where it runs: here, or on the machine that `host` names. */
async function placeOf(
  { skyrl, host, address }: ServerSettings & { readonly skyrl: SkyrlBlock },
  project: ProjectContext,
  control: EnsureControl,
): Promise<Pick<SkyrlOrder, "gpus" | "environment" | "uv" | "remote">> {
  if (!isRemote(host)) {
    const { gpus, folder, uv } = await ensurePython(skyrl, project, control);
    return { gpus, environment: folder, uv };
  }
  const { lookAtRemote, installRemote } = await import("../servers/skyrl/remote.ts");
  const options = { host: host as string, env: project.env, ...control };
  const machine = await lookAtRemote(options);
  const gpus = skyrl.settings.gpus ?? machine.gpus;
  const recipe = recipeOf(extrasOf(skyrl.settings, gpus), skyrl.python, project.env);
  const { folder: environment, port } = await installRemote(options, machine, recipe);
  // Of this project on this machine: others of the same name have folders of their own there.
  const owner = shortDigest(digestJson({ machine: hostname(), folder: project.dataFolder }));
  const folder = `${machine.data}/servers/${owner}-${nameOf(address)}`;
  return { gpus, environment, uv: machine.uv, remote: { host: options.host, port, folder } };
}

type Described = Omit<SkyrlOrder, "gpus" | "environment" | "uv" | "remote"> & { readonly at?: string };

function describe(
  server: ServerSettings & { readonly skyrl: SkyrlBlock },
  served: string,
  project: ProjectContext,
  folder: string,
): Described {
  const { settings, auth, tls, restarts, python } = server.skyrl;
  // What runs elsewhere is forwarded to loopback here.
  const host = isRemote(server.host) ? DEFAULTS.host : (server.host ?? DEFAULTS.host);
  const inProject = (path: string) => (isAbsolute(path) ? path : resolve(project.folder, path));
  const described = {
    folder: resolve(folder),
    model: server.model,
    servedModel: served,
    isLocalModel: isAbsolute(served) && existsSync(join(served, "config.json")),
    settings,
    host,
    port: server.port ?? DEFAULTS.port,
    isGuarded: auth === "token" || !isLoopback(host),
    idleTimeoutSeconds: server.idleTimeoutSeconds ?? DEFAULTS.idleTimeoutSeconds,
    restarts,
    ...(isRemote(server.host) ? { at: server.host as string } : {}),
    ...(tls ? { tls: { certificate: inProject(tls.certificate), key: inProject(tls.key) } } : {}),
  };
  return { ...described, digest: digestJson({ ...described, python }) };
}
