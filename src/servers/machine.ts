/** What a machine has of what servers need: looked at here, judged by `verdicts.ts`. */
import { execFile } from "node:child_process";
import { existsSync, statfsSync } from "node:fs";
import { createServer } from "node:net";
import { freemem, totalmem } from "node:os";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { type GpuReport, reportGpus } from "./skyrl/gpus.ts";
import { dataHome } from "./skyrl/recipe.ts";
import { findUv } from "./skyrl/uv.ts";

const run = promisify(execFile);
const TIMEOUT_MS = 15_000;

type Env = Readonly<Record<string, string | undefined>>;

export interface Machine extends GpuReport {
  readonly platform: NodeJS.Platform;
  readonly node: string;
  /** Version of the Python that uv would take for a server; undefined where none is here yet, which uv then fetches. */
  readonly python?: string;
  readonly uv?: { readonly path: string; readonly version: string };
  readonly docker?: string;
  readonly memoryBytes: { readonly total: number; readonly free: number };
  /** Where Python environments lie. */
  readonly disk: { readonly folder: string; readonly freeBytes: number };
  /** Whether something listens already. */
  readonly ports: readonly { readonly port: number; readonly isFree: boolean }[];
}

/** The port of a SkyRL server that does not say another. */
const PORTS = [8000];

export async function examineMachine(env: Env, python: string): Promise<Machine> {
  const uvPath = findUv(env);
  const [gpus, uvVersion, pythonVersion, docker, ports] = await Promise.all([
    reportGpus(),
    uvPath === undefined ? undefined : firstLine(uvPath, ["--version"]),
    uvPath === undefined ? firstLine("python3", ["--version"]) : pythonOf(uvPath, python),
    dockerVersion(),
    Promise.all(PORTS.map(async (port) => ({ port, isFree: await isFree(port) }))),
  ]);
  const version = (text: string) => text.replace(/^\D+/, "").split(" ")[0] as string;
  return {
    ...gpus,
    platform: process.platform,
    node: process.versions.node,
    memoryBytes: { total: totalmem(), free: freemem() },
    disk: diskOf(dataHome(env)),
    ports,
    ...(uvPath !== undefined && uvVersion !== undefined ? { uv: { path: uvPath, version: version(uvVersion) } } : {}),
    ...(pythonVersion === undefined ? {} : { python: version(pythonVersion) }),
    ...(docker === undefined ? {} : { docker }),
  };
}

/** Of the daemon that answers here; undefined where none does. */
export const dockerVersion = (): Promise<string | undefined> =>
  firstLine("docker", ["version", "--format", "{{.Server.Version}}"]);

/** Downloads nothing. */
async function pythonOf(uv: string, wanted: string): Promise<string | undefined> {
  const path = await firstLine(uv, ["python", "find", "--no-python-downloads", wanted]);
  return path === undefined ? undefined : firstLine(path, ["--version"]);
}

async function firstLine(program: string, args: readonly string[]): Promise<string | undefined> {
  try {
    const { stdout } = await run(program, [...args], { timeout: TIMEOUT_MS });
    const line = stdout.trim().split("\n")[0] ?? "";
    return line === "" ? undefined : line;
  } catch {
    return undefined;
  }
}

function diskOf(folder: string): Machine["disk"] {
  let there = folder;
  while (!existsSync(there)) there = dirname(there);
  const { bavail, bsize } = statfsSync(there);
  return { folder, freeBytes: bavail * bsize };
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer()
      .once("error", () => resolve(false))
      .listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
