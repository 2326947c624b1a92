/** Servers of a fake uv and a fake SkyRL (`fake-uv.mjs`), with the real supervisor, guard and front door. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished, vi } from "vitest";
import type { ProjectContext } from "../../../src/kind.ts";
import { ensureSkyrl, type SkyrlBlock } from "../../../src/kinds/skyrl.ts";
import { processIdentity, signalProcess } from "../../../src/process.ts";
import { readRuntime, type ServerRuntime } from "../../../src/servers/runtime.ts";
import { MARKER } from "../../../src/servers/skyrl/guard.ts";

export const fakeUv = new URL("./fake-uv.mjs", import.meta.url).pathname;

/** Undefined where there is no Python 3, without which there is no SkyRL either. */
export const python = findPython();

function findPython(): string | undefined {
  const { status, stdout } = spawnSync("python3", ["-c", "import sys; print(sys.executable)"], { encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}

export const jaxSettings: SkyrlBlock["settings"] = {
  backend: "jax",
  gpus: 0,
  nodes: 1,
  tensorParallel: 1,
  maxModelLen: 0,
  slots: 3,
  maxLoraRank: 8,
  backendConfig: {},
};

export class FakeSite {
  readonly root = mkdtempSync(join(tmpdir(), "rlcli-skyrl-"));
  readonly folder = join(this.root, "server");
  readonly calls = join(this.root, "calls.txt");
  readonly project: ProjectContext;

  constructor(misbehaviour: Readonly<Record<string, string>> = {}) {
    const env = {
      RLCLI_UV: fakeUv,
      RLCLI_DATA: join(this.root, "data"),
      FAKE_PYTHON: python,
      FAKE_CALLS: this.calls,
      ...misbehaviour,
    };
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value);
    mkdirSync(join(this.root, "model"));
    writeFileSync(join(this.root, "model", "config.json"), "{}");
    this.project = {
      project: "test",
      folder: this.root,
      dataFolder: join(this.root, ".rlcli"),
      cacheFolder: join(this.root, "cache"),
      env: process.env,
    };
    onTestFinished(async () => {
      const found = readRuntime(this.folder);
      if (found.state === "running") signalProcess(found.runtime.process, "SIGKILL");
      await vi.waitFor(() => this.alive.length === 0 || Promise.reject(new Error("something is left")), 60_000);
      vi.unstubAllEnvs();
      rmSync(this.root, { recursive: true, force: true, maxRetries: 5 });
    });
  }

  start(
    block: Partial<SkyrlBlock> = {},
    server: { idleTimeoutSeconds?: number; host?: string; model?: string } = {},
  ): Promise<ServerRuntime> {
    const skyrl: SkyrlBlock = {
      settings: jaxSettings,
      python: {},
      restarts: true,
      ...block,
    };
    const settings = {
      address: "server.box" as const,
      backend: "jax" as const,
      model: "./model",
      port: 0,
      ...server,
      skyrl,
    };
    return ensureSkyrl(settings, this.project, this.folder, {});
  }

  get log(): string {
    const path = join(this.folder, "log.txt");
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }

  /** Engines that were started, of all lives. */
  get engines(): readonly number[] {
    return [...this.log.matchAll(/^engine (\d+)$/gm)].map((match) => Number(match[1]));
  }

  /** By the mark that all processes of the server carry: a pid alone may be another's by now. */
  #isOurs(pid: number): boolean {
    if (processIdentity(pid) === undefined) return false;
    if (!existsSync("/proc/self/environ")) return true;
    try {
      return readFileSync(`/proc/${pid}/environ`, "utf8").includes(`${MARKER}=${this.folder}\0`);
    } catch {
      return false;
    }
  }

  /** Engines that run. */
  get alive(): readonly number[] {
    return this.engines.filter((pid) => this.#isOurs(pid));
  }
}
