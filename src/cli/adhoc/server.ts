/** The server that `rlcli serve --base-model` stands for, from its flags; found again by its model alone. */
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";
import { digestJson, shortDigest } from "../../digest.ts";
import { isSkyrl } from "../../servers/skyrl/settings.ts";
import { type AdhocSpec, absoluteModel, adhocServer, adhocSpec, isModelFolder } from "../adhoc.ts";
import type { CommandContext } from "../context.ts";
import { blockOf } from "./work.ts";

/** Flags of `serve start` that are fields of a server's block. */
export interface ServerFlags {
  readonly backend?: string;
  readonly host?: string;
  readonly port?: number;
  readonly gpus?: number;
  readonly nodes?: number;
  readonly tensorParallel?: number;
  readonly maxModelLen?: number;
  readonly maxLoraRank?: number;
  readonly gpuMemory?: number;
  readonly slots?: number;
  readonly auth?: string;
  readonly tlsCertificate?: string;
  readonly tlsKey?: string;
  readonly idleTimeout?: string;
  readonly restart?: string;
  readonly rayAddress?: string;
  readonly backendConfig?: string;
}

/** Flags that say something only of SkyRL servers. */
const SKYRL_ONLY = [
  "gpus",
  "nodes",
  "tensorParallel",
  "maxModelLen",
  "maxLoraRank",
  "gpuMemory",
  "slots",
  "auth",
  "tlsCertificate",
  "tlsKey",
  "idleTimeout",
  "restart",
  "rayAddress",
  "backendConfig",
] as const;

/** All that describe a server. */
export const BLOCK_FLAGS = ["backend", "host", "port", ...SKYRL_ONLY] as const;

/** What the ad-hoc project of a SkyRL server is told by, so that `stop` and `status` need no other flags than the model. */
const identityOf = (model: string) => ({ backend: "skyrl", model });

/** `org/name`, as hubs name models. */
const HUB_NAME = /^[\w.-]+\/[\w.-]+$/;

/** For a start: a hub's name is served by jax unless something else is said, or was when it was started before. */
export function withBackend<F extends ServerFlags & { readonly model?: string }>(context: CommandContext, flags: F): F {
  const { model, backend } = flags;
  const isHubName = model !== undefined && HUB_NAME.test(model) && !isModelFolder(context, model);
  if (!isHubName || backend !== undefined || existsSync(skyrlSpecFile(context, model))) return flags;
  return { ...flags, backend: "jax" };
}

/** The block of a server that flags describe. */
export async function serverBlock(
  context: CommandContext,
  flags: ServerFlags & { readonly model: string; readonly baseUrl?: string },
): Promise<object> {
  if (isSkyrl(flags.backend ?? "")) return skyrlServer(context, absoluteModel(context, flags.model), flags);
  refuseSkyrlOnly(flags);
  return { ...(await adhocServer(context, flags)), ...blockOf({ host: flags.host, port: flags.port }) };
}

/** The spec of an ad-hoc server. Without `--backend` it is the SkyRL server that was started for the model, where there is one. */
export async function serverSpec(
  context: CommandContext,
  model: string | undefined,
  baseUrl: string | undefined,
  flags: ServerFlags,
): Promise<AdhocSpec> {
  if (model !== undefined && isSkyrl(flags.backend ?? "")) {
    const server = skyrlServer(context, absoluteModel(context, model), flags);
    return adhocSpec(context, "server", { servers: { default: server } }, identityOf(absoluteModel(context, model)));
  }
  refuseSkyrlOnly(flags);
  if (model !== undefined && flags.backend === undefined) {
    const known = skyrlSpecFile(context, absoluteModel(context, model));
    if (existsSync(known)) return { file: known, text: "" };
  }
  const choice = { ...(model === undefined ? {} : { model }), ...(baseUrl === undefined ? {} : { baseUrl }) };
  const server = await adhocServer(context, choice);
  return adhocSpec(context, "server", { servers: { default: server } });
}

function refuseSkyrlOnly(flags: ServerFlags): void {
  const other = SKYRL_ONLY.find((name) => flags[name] !== undefined);
  if (other !== undefined)
    fail(
      "RL9003",
      `--${other.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`)} is for jax, fsdp and megatron servers: say which with --backend.`,
    );
}

function skyrlSpecFile(context: CommandContext, model: string): string {
  const digest = shortDigest(digestJson({ verb: "server", identity: identityOf(model) }));
  return join(context.cwd, ".rlcli", "adhoc", digest, "rlcli.yaml");
}

function skyrlServer(context: CommandContext, model: string, flags: ServerFlags): Record<string, unknown> {
  const { tlsCertificate: certificate, tlsKey: key } = flags;
  if ((certificate === undefined) !== (key === undefined))
    fail("RL9003", "--tls-certificate and --tls-key go together: a certificate is of no use without its key.");
  return blockOf({
    backend: flags.backend,
    model,
    host: flags.host,
    port: flags.port,
    gpus: flags.gpus,
    nodes: flags.nodes,
    tensor_parallel: flags.tensorParallel,
    max_model_len: flags.maxModelLen,
    max_lora_rank: flags.maxLoraRank,
    gpu_memory: flags.gpuMemory,
    slots: flags.slots,
    auth: flags.auth,
    tls:
      certificate === undefined
        ? undefined
        : { certificate: resolve(context.cwd, certificate), key: resolve(context.cwd, key as string) },
    idle_timeout: flags.idleTimeout,
    restart: flags.restart,
    ray: flags.rayAddress === undefined ? undefined : { address: flags.rayAddress },
    backend_config: flags.backendConfig === undefined ? undefined : parseConfig(flags.backendConfig),
  });
}

function parseConfig(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    fail("RL9003", `--backend-config takes a JSON object: ${messageOf(error)}.`);
  }
  return fail("RL9003", "--backend-config takes a JSON object, such as '{\"max_lora_adapters\": 4}'.");
}
