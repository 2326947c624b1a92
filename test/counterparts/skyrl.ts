/** A real SkyRL server with its jax backend on the CPU, from the environment that `test/counterparts/setup-skyrl` makes. */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { freePort } from "../../src/servers/ports.ts";
import { cache } from "./environment.ts";

const environment = join(cache, "skyrl");
const bin = join(environment, "bin");

export const hasSkyrl = existsSync(join(environment, "complete"));

export interface SkyrlServer {
  readonly url: string;
  stop(): Promise<void>;
}

const START_MS = 180_000;

/** Starts a server of its own folder and port; resolves when its engine has loaded the model. */
export async function startSkyrl(modelFolder: string): Promise<SkyrlServer> {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-skyrl-"));
  const checkpoints = join(folder, "checkpoints");
  mkdirSync(checkpoints);
  const port = await freePort();
  const logFile = join(folder, "log");
  const log = openSync(logFile, "w");
  // The server starts its engine by reading its parent's command line, which must be uv's.
  const uv = ["run", "--no-sync", "--no-project", "--active", "-m", "skyrl.tinker.api"];
  const options = {
    "base-model": modelFolder,
    backend: "jax",
    host: "127.0.0.1",
    port: String(port),
    "checkpoints-base": checkpoints,
    "database-url": `sqlite:///${join(folder, "db.sqlite")}`,
    "backend-config": JSON.stringify({ max_lora_adapters: 8, max_lora_rank: 16 }),
  };
  const child = spawn(join(bin, "uv"), [...uv, ...Object.entries(options).flatMap(([k, v]) => [`--${k}`, v])], {
    // A group of its own: the engine outlives the API if that alone is killed.
    detached: true,
    stdio: ["ignore", log, log],
    env: {
      ...process.env,
      VIRTUAL_ENV: environment,
      PATH: `${bin}${delimiter}${process.env.PATH}`,
      JAX_PLATFORMS: "cpu",
      HF_HUB_OFFLINE: "1",
    },
  });
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const url = `http://127.0.0.1:${port}`;
  const stop = async () => {
    kill(child.pid, "SIGTERM");
    await Promise.race([ended, sleep(10_000)]);
    kill(child.pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await ready(url, logFile, () => child.exitCode !== null);
    return { url, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

function kill(pid: number | undefined, signal: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, signal);
  } catch {
    // The group is gone already.
  }
}

async function ready(url: string, logFile: string, hasEnded: () => boolean): Promise<void> {
  for (const startedAt = performance.now(); performance.now() - startedAt < START_MS; await sleep(300)) {
    const log = readFileSync(logFile, "utf8");
    if (hasEnded()) throw new Error(`SkyRL ended:\n${log.slice(-3000)}`);
    // The API answers before the engine has its model; a request that it takes then simply waits.
    if ((await fetch(`${url}/api/v1/healthz`).catch(() => undefined))?.ok) return;
  }
  throw new Error(`SkyRL did not start:\n${readFileSync(logFile, "utf8").slice(-3000)}`);
}
