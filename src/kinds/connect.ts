/** From a server's settings to an address one can talk to: starts a server of ours on need, finds an external one. */
import { join } from "node:path";
import { type Address, nameOf } from "../address.ts";
import { fail } from "../diagnostic.ts";
import { durationMs } from "../duration.ts";
import type { ProjectContext } from "../kind.ts";
import { ensureEmbedded } from "../servers/embedded/ensure.ts";
import { indexFolder, noteServer } from "../servers/known.ts";
import { isSkyrl } from "../servers/skyrl/settings.ts";
import type { SpecNode } from "../spec.ts";
import { numberAt, secretAt, stringAt } from "./attributes.ts";
import { ensureSkyrl, type SkyrlBlock, skyrlBlock } from "./skyrl.ts";

/** What a server's block says, as plain data that a worker process can be handed. Secrets are names. */
export interface ServerSettings {
  readonly address: Address;
  readonly backend: "embedded" | "external" | "jax" | "fsdp" | "megatron";
  readonly model: string;
  readonly port?: number;
  readonly host?: string;
  readonly idleTimeoutSeconds?: number;
  readonly slots?: number;
  readonly url?: string;
  /** Name of the secret that holds the key. */
  readonly apiKey?: string;
  /** Of jax, fsdp and megatron servers. */
  readonly skyrl?: SkyrlBlock;
}

/** Whether rlcli starts and stops the server. */
export const isManaged = ({ backend }: Pick<ServerSettings, "backend">): boolean => backend !== "external";

export interface Connection {
  readonly url: string;
  readonly token: string | undefined;
  /** Tells one life of a server from the next; the URL where a server does not say. */
  readonly serverRun: string;
  /** What the server calls the base model, where that is not what the spec calls it. */
  readonly model?: string;
}

export function serverFolder(dataFolder: string, address: Address): string {
  return join(dataFolder, "servers", nameOf(address));
}

export function serverSettings(node: SpecNode): ServerSettings {
  const optional = <K extends string, V>(key: K, value: V | undefined) => (value === undefined ? {} : { [key]: value });
  const idle = stringAt(node, "idle_timeout");
  const backend = stringAt(node, "backend") as ServerSettings["backend"];
  return {
    address: node.address,
    backend,
    model: stringAt(node, "model") ?? "",
    ...optional("port", numberAt(node, "port")),
    ...optional("host", stringAt(node, "host")),
    ...optional("idleTimeoutSeconds", idle === undefined ? undefined : durationMs(idle) / 1000),
    ...optional("slots", numberAt(node, "slots")),
    ...optional("url", stringAt(node, "url")),
    ...optional("apiKey", secretAt(node, "api_key")),
    ...(isSkyrl(backend) ? { skyrl: skyrlBlock(node, backend) } : {}),
  };
}

export async function connect(
  settings: ServerSettings,
  project: ProjectContext,
  options: { signal?: AbortSignal; onPhase?: (text: string) => void } = {},
): Promise<Connection> {
  if (settings.backend === "embedded") {
    const { url, token, serverRun } = await ensureEmbedded({
      folder: serverFolder(project.dataFolder, settings.address),
      model: settings.model,
      baseFolder: project.folder,
      cacheFolder: project.cacheFolder,
      ...pick(settings, "port", "host", "idleTimeoutSeconds", "slots"),
      ...options,
    });
    note(settings, project);
    return { url, token, serverRun };
  }
  if (settings.skyrl) {
    const server = { ...settings, skyrl: settings.skyrl };
    const folder = serverFolder(project.dataFolder, settings.address);
    const { url, token, serverRun, modelFolder } = await ensureSkyrl(server, project, folder, options);
    note(settings, project);
    return { url, token, serverRun, model: modelFolder };
  }
  const url = settings.url as string;
  return { url, token: secretValue(settings.apiKey, project), serverRun: url };
}

function note({ address }: ServerSettings, { dataFolder, folder, env }: ProjectContext): void {
  noteServer(indexFolder(env), { address, folder: serverFolder(dataFolder, address), project: folder });
}

/** A secret's value from the environment variable of its name. */
function secretValue(name: string | undefined, project: Pick<ProjectContext, "env">): string | undefined {
  if (name === undefined) return undefined;
  const value = project.env[name];
  if (!value) fail("RL5012", `The secret ${name} is not set. Give it as the environment variable ${name}.`);
  return value;
}

function pick<T, K extends keyof T>(from: T, ...keys: K[]): Pick<T, K> {
  return Object.fromEntries(keys.filter((key) => from[key] !== undefined).map((key) => [key, from[key]])) as Pick<T, K>;
}
