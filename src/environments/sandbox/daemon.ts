/** A connection to a Docker daemon, and what its faults mean. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { importOptional } from "../../optional.ts";
import { withoutCredentials } from "../../url.ts";
import { Tunnel } from "./tunnel.ts";

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_SOCKET = "/var/run/docker.sock";
/** API 1.41 (Docker 20.10) is the oldest that is tried. */
const OLDEST_API = 1.41;
const PING_TIMEOUT_MS = 10_000;

/** A way to a daemon. */
export interface Connection {
  readonly docker: Docker;
  /** Where it leads, for messages. */
  readonly address: string;
  /** Connects again where the way itself was lost. Fails with RL7301. */
  revive(): Promise<void>;
  close(): void;
}

/**
 * `unix:///path`, `tcp://host:port` (with certificates of DOCKER_CERT_PATH where DOCKER_TLS_VERIFY is set) or
 * `ssh://user@host:port/path/of/socket`, of which only the host is needed. Fails with RL7301, and with RL9011
 * where the client for Docker is not installed.
 */
export async function connectDaemon(host: string | undefined, env: Environment): Promise<Connection> {
  const address = host ?? env.DOCKER_HOST ?? `unix://${DEFAULT_SOCKET}`;
  const { default: Client } = await importOptional("dockerode", "Sandboxes", () => import("dockerode"));
  const direct = (docker: Docker): Connection => ({
    docker,
    address: withoutCredentials(address),
    revive: async () => {},
    close: () => {},
  });
  const path = /^unix:\/\/(.*)$/.exec(address)?.[1];
  if (path !== undefined) return direct(new Client({ socketPath: path }));
  if (!URL.canParse(address) || new URL(address).hostname === "")
    fail(
      "RL7301",
      `\`${withoutCredentials(address)}\` is no address of a Docker daemon, such as unix:///var/run/docker.sock.`,
    );
  const url = new URL(address);
  if (url.protocol === "ssh:") return connectBySsh(Client, url, address, env);
  const isTls = Boolean(env.DOCKER_TLS_VERIFY) || url.protocol === "https:";
  return direct(
    new Client({
      host: url.hostname,
      port: Number(url.port || (isTls ? 2376 : 2375)),
      protocol: isTls ? "https" : "http",
      ...(isTls ? certificates(env.DOCKER_CERT_PATH) : {}),
    }),
  );
}

async function connectBySsh(Client: typeof Docker, url: URL, address: string, env: Environment): Promise<Connection> {
  const { username, hostname, port, pathname } = url;
  const tunnel = new Tunnel(
    {
      destination: username === "" ? hostname : `${decodeURIComponent(username)}@${hostname}`,
      ...(port === "" ? {} : { port }),
      remoteSocket: pathname.length > 1 ? pathname : DEFAULT_SOCKET,
    },
    (env.RLCLI_SSH ?? "ssh").split(/\s+/).filter((word) => word !== ""),
  );
  try {
    await tunnel.open();
  } catch (error) {
    tunnel.close();
    throw error;
  }
  const docker = new Client({ socketPath: tunnel.socketPath });
  return { docker, address, revive: () => tunnel.open(), close: () => tunnel.close() };
}

function certificates(folder: string | undefined): { ca?: string; cert?: string; key?: string } {
  const read = (name: string) => {
    const path = folder && join(folder, `${name}.pem`);
    return path && existsSync(path) ? { [name]: readFileSync(path, "utf8") } : {};
  };
  return { ...read("ca"), ...read("cert"), ...read("key") };
}

export interface DaemonFacts {
  /** The daemon's own, which no other has. */
  readonly id: string;
  readonly cpus: number;
  readonly memoryBytes: number;
}

/** Fails with RL7301. */
export async function checkDaemon(docker: Docker): Promise<DaemonFacts> {
  try {
    const version = await within(PING_TIMEOUT_MS, docker.version(), "the daemon");
    if (Number(version.ApiVersion) < OLDEST_API)
      fail(
        "RL7301",
        `The Docker daemon speaks API ${version.ApiVersion}; ${OLDEST_API} (Docker 20.10) or later is needed.`,
      );
    const info = (await within(PING_TIMEOUT_MS, docker.info(), "the daemon")) as {
      ID: string;
      NCPU: number;
      MemTotal: number;
    };
    return { id: info.ID, cpus: info.NCPU, memoryBytes: info.MemTotal };
  } catch (error) {
    if (error instanceof RlcliError && error.diagnostics[0]?.code === "RL7301") throw error;
    const hint = isCode(error, "EACCES")
      ? "This user may not use its socket: join the group `docker`, or name another daemon with DOCKER_HOST."
      : "Start it (`systemctl start docker`, or `dockerd`), or name another with DOCKER_HOST.";
    return fail("RL7301", `The Docker daemon does not answer: ${wordsOf(error)}. ${hint}`, { cause: error });
  }
}

const isCode = (error: unknown, code: string): boolean => (error as { code?: unknown } | undefined)?.code === code;

/** Status of the daemon's answer; undefined where there was none. */
export const statusOf = (error: unknown): number | undefined =>
  (error as { statusCode?: number } | undefined)?.statusCode;

/** A fault in the daemon's own words. */
export function wordsOf(error: unknown): string {
  const said = (error as { json?: { message?: string } } | undefined)?.json?.message;
  return (said ?? messageOf(error)).trim().replace(/\.$/, "");
}

/** RL7303 in the daemon's words. */
export function failSandbox(what: string, error: unknown): never {
  if (error instanceof RlcliError) throw error;
  return fail("RL7303", `${what}: ${wordsOf(error)}.`, { cause: error });
}

/** Rejects with RL7303 where the daemon takes longer; what it does then is not waited for. */
export async function within<T>(ms: number, work: Promise<T>, what: string): Promise<T> {
  const timer = new AbortController();
  work.catch(() => {});
  try {
    return await Promise.race([
      work,
      sleep(ms, undefined, { signal: timer.signal, ref: true }).then(() =>
        fail("RL7303", `${what} did not answer within ${Math.round(ms / 1000)} s.`),
      ),
    ]);
  } finally {
    timer.abort();
  }
}
