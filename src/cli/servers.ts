/** How servers of a project stand, as `serve status` and `serve list` tell it. */
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "../address.ts";
import { serverFolder, serverSettings } from "../kinds/connect.ts";
import { listUsers, readRuntime, type ServerRuntime } from "../servers/runtime.ts";
import type { SpecNode } from "../spec.ts";
import type { OpenProject } from "./project.ts";
import type { ServerRow } from "./views/servers.ts";

const ASK_TIMEOUT_MS = 3000;

export function serverNodes({ spec }: Pick<OpenProject, "spec">): readonly SpecNode[] {
  return [...(spec?.nodes.values() ?? [])].filter((node) => node.kind === "server");
}

/** Addresses of the servers that run under a project's `.rlcli`, whatever its spec says now. */
export function runningServers(dataFolder: string): readonly Address[] {
  const folder = join(dataFolder, "servers");
  return (existsSync(folder) ? readdirSync(folder) : [])
    .map((name): Address => `server.${name}`)
    .filter((address) => readRuntime(serverFolder(dataFolder, address)).state === "running");
}

/** From files and the process table; a running SkyRL server is asked for what only it knows. */
export async function serverRow(open: OpenProject, node: SpecNode): Promise<ServerRow> {
  const { backend, model } = serverSettings(node);
  const { address } = node;
  if (backend === "external") return { address, backend, model, state: "external" };
  const folder = serverFolder(open.context.dataFolder, address);
  const seen = readRuntime(folder);
  if (seen.state === "died") return { address, backend, model, state: "died", lastWords: seen.logTail };
  if (seen.state !== "running") return { address, backend, model, state: seen.state };
  return runningRow(address, folder, seen.runtime);
}

/** Of a server that runs, whatever its spec says now. */
export async function runningRow(address: Address, folder: string, runtime: ServerRuntime): Promise<ServerRow> {
  const common = {
    address,
    backend: runtime.backend ?? "embedded",
    model: runtime.model,
    state: "running" as const,
    url: runtime.publicUrl ?? runtime.url,
    pid: runtime.process.pid,
    startedAt: runtime.startedAt,
    uptimeSeconds: Math.max(0, Math.round((Date.now() - Date.parse(runtime.startedAt)) / 1000)),
  };
  if (runtime.backend === undefined) return { ...common, sessions: listUsers(folder).length };
  return { ...common, ...(runtime.gpus === undefined ? {} : { gpus: runtime.gpus }), ...(await ask(runtime)) };
}

type Told = Pick<ServerRow, "sessions" | "restarts" | "lastCrash" | "state">;

/** What its front door tells; nothing where it does not answer. */
async function ask({ url, token }: ServerRuntime): Promise<Partial<Told>> {
  try {
    const response = await fetch(`${url}/rlcli/status`, {
      headers: { "X-API-Key": token },
      signal: AbortSignal.timeout(ASK_TIMEOUT_MS),
    });
    const { sessions, restarts, lastCrash, state } = (await response.json()) as Partial<Omit<Told, "state">> & {
      state?: string;
    };
    return {
      ...(sessions === undefined ? {} : { sessions }),
      ...(restarts === undefined ? {} : { restarts }),
      ...(lastCrash === undefined ? {} : { lastCrash }),
      ...(state === "starting" || state === "stopping" ? { state } : {}),
    };
  } catch {
    return {};
  }
}
