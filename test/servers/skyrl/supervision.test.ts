/** What becomes of a SkyRL server's processes, with the real supervisor and guard and a SkyRL that misbehaves on purpose. */
import { once } from "node:events";
import { readFileSync, statSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { processIdentity, signalProcess } from "../../../src/process.ts";
import { readCrash, readRuntime, type ServerRuntime, stopServer } from "../../../src/servers/runtime.ts";
import { FakeSite, jaxSettings, python } from "./support.ts";

/** Of a busy machine: several programs start one after another. */
const SLOW = 180_000;

async function call(runtime: ServerRuntime, path: string, body?: object): Promise<Record<string, any>> {
  const response = await fetch(`${runtime.url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { "x-api-key": runtime.token },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { httpStatus: response.status, ...((await response.json()) as object) };
}

describe.skipIf(python === undefined)("a SkyRL server", () => {
  test(
    "is ready once it has sampled, is the same for all who ask, and leaves nothing when it is stopped",
    async () => {
      const site = new FakeSite({ FAKE_ENGINE_MS: "400" });
      const began = performance.now();
      const [first, second] = await Promise.all([site.start(), site.start()]);
      expect(performance.now() - began).toBeGreaterThan(400);
      expect(second).toEqual(first);
      expect(first).toMatchObject({ backend: "jax", gpus: 0, model: "./model", modelFolder: join(site.root, "model") });
      expect(statSync(join(site.folder, "runtime.json")).mode & 0o777).toBe(0o600);
      const { args, marker } = await call(first, "/api/v1/env");
      expect(marker).toBe(site.folder);
      expect(args).toEqual(
        expect.arrayContaining([
          "--no-sync",
          "--host",
          "127.0.0.1",
          "--checkpoints-base",
          join(site.folder, "checkpoints"),
        ]),
      );
      expect(await call(first, "/rlcli/status")).toMatchObject({ state: "serving", backend: "jax", restarts: 0 });
      expect(site.alive).toHaveLength(1);
      await stopServer(site.folder, { timeoutMs: 60_000 });
      expect(site.alive).toEqual([]);
      expect(readRuntime(site.folder)).toMatchObject({ state: "stopped" });
      expect(site.log).not.toContain(first.token);
    },
    SLOW,
  );

  test(
    "that is killed is started again, by its supervisor, as another life; its crash is quoted",
    async () => {
      const site = new FakeSite();
      const first = await site.start();
      process.kill(site.engines[0]!, "SIGKILL");
      await expect
        .poll(() => readCrash(site.folder)?.lines.join("\n"), { timeout: 60_000 })
        .toContain("Background engine crashed");
      const again = await site.start();
      expect(again.process).toEqual(first.process);
      expect(again.serverRun).not.toBe(first.serverRun);
      expect([again.url, again.token]).toEqual([first.url, first.token]);
      expect(await call(again, "/rlcli/status")).toMatchObject({ restarts: 1, lastCrash: { code: 1 } });
      expect(site.engines).toHaveLength(2);
      expect(site.alive).toEqual([site.engines[1]]);
    },
    SLOW,
  );

  test(
    "whose worker on a cluster has died is started again; where there is no cluster, words alone end nothing",
    async () => {
      const site = new FakeSite();
      const alone = await site.start();
      await call(alone, "/api/v1/forward", {});
      await expect.poll(() => site.log, { timeout: 60_000 }).toContain("ActorDiedError");
      await stopServer(site.folder, { timeoutMs: 60_000 });
      expect(site.engines).toHaveLength(1);

      const cluster = createServer().listen(0, "127.0.0.1");
      onTestFinished(() => void cluster.close());
      await once(cluster, "listening");
      const rayAddress = `127.0.0.1:${(cluster.address() as AddressInfo).port}`;
      const settings = { ...jaxSettings, nodes: 2, rayAddress };
      const first = await site.start({ settings });
      await call(first, "/api/v1/forward", {});
      await expect
        .poll(() => readCrash(site.folder)?.lines.join("\n"), { timeout: 60_000 })
        .toContain("ActorDiedError: The actor died");
      const again = await site.start({ settings });
      expect(again.process).toEqual(first.process);
      expect(again.serverRun).not.toBe(first.serverRun);
      expect(site.alive).toEqual([site.engines[2]]);
    },
    SLOW,
  );

  test(
    "whose cluster is not there does not start, and says so",
    async () => {
      const site = new FakeSite();
      const settings = { ...jaxSettings, nodes: 2, rayAddress: "127.0.0.1:1" };
      await expect(site.start({ settings })).rejects.toThrow(/No Ray cluster is at 127\.0\.0\.1:1 .*ray start --head/);
      expect(site.engines).toEqual([]);
    },
    SLOW,
  );

  test(
    "that is not to be started again has died, with its last words",
    async () => {
      const site = new FakeSite();
      const runtime = await site.start({ restarts: false });
      process.kill(site.engines[0]!, "SIGKILL");
      await expect.poll(() => readRuntime(site.folder).state, { timeout: 60_000 }).toBe("died");
      expect(readRuntime(site.folder)).toMatchObject({
        pid: runtime.process.pid,
        logTail: expect.stringContaining("exit code 137"),
      });
      expect((await site.start()).process).not.toEqual(runtime.process);
    },
    SLOW,
  );

  test(
    "whose supervisor is killed ends with it, engine and all",
    async () => {
      const site = new FakeSite();
      const { process: supervisor } = await site.start();
      signalProcess(supervisor, "SIGKILL");
      await expect.poll(() => site.alive, { timeout: 60_000 }).toEqual([]);
      expect(readRuntime(site.folder)).toMatchObject({ state: "died", pid: supervisor.pid });
    },
    SLOW,
  );

  test(
    "what an earlier life left behind is ended before the next one starts",
    async () => {
      const site = new FakeSite();
      const { process: supervisor } = await site.start();
      const [engine] = site.engines;
      const guard = guardOf(engine!, site.folder);
      // First it stands still: it would start another when its guard is gone.
      for (const [pid, signal] of [
        [supervisor.pid, "SIGSTOP"],
        [guard, "SIGKILL"],
        [supervisor.pid, "SIGKILL"],
      ] as const)
        process.kill(pid, signal);
      expect(processIdentity(engine!)).toBeDefined();
      await site.start();
      expect(processIdentity(engine!)).toBeUndefined();
    },
    SLOW,
  );

  test(
    "finishes the saves that it has taken before it stops",
    async () => {
      const site = new FakeSite({ FAKE_SAVE_MS: "1500" });
      const runtime = await site.start();
      await call(runtime, "/api/v1/save_weights", { model_id: "m" });
      await stopServer(site.folder, { timeoutMs: 60_000 });
      expect(site.log).toContain("waiting for 1 saves");
      expect(site.log.split("\n")).toContain("saved");
    },
    SLOW,
  );

  test(
    "stops by itself when nobody uses it, which is a clean end",
    async () => {
      const site = new FakeSite();
      await site.start({}, { idleTimeoutSeconds: 1 });
      await expect.poll(() => readRuntime(site.folder).state, { timeout: 60_000 }).toBe("stopped");
      expect(JSON.parse(readFileSync(join(site.folder, "stopped.json"), "utf8"))).toMatchObject({ reason: "idle" });
      expect(site.alive).toEqual([]);
    },
    SLOW,
  );

  test(
    "that cannot start says why, in its own words",
    async () => {
      const site = new FakeSite({ FAKE_CRASH: "start" });
      await expect(site.start()).rejects.toThrow(/RuntimeError: CUDA out of memory/);
      expect(readRuntime(site.folder)).toEqual({ state: "never" });
    },
    SLOW,
  );

  test(
    "that answers a sample with nothing is not ready",
    async () => {
      const site = new FakeSite({ FAKE_EMPTY: "1" });
      await expect(site.start()).rejects.toThrow(/RL5023|did not come up/);
      await expect.poll(() => site.alive, { timeout: 60_000 }).toEqual([]);
    },
    SLOW,
  );

  test(
    "asks for its token beyond loopback",
    async () => {
      const site = new FakeSite();
      const runtime = await site.start({}, { host: "0.0.0.0" });
      expect((await fetch(`${runtime.url}/api/v1/healthz`)).status).toBe(401);
      await expect(site.start({ auth: "none" }, { host: "0.0.0.0" })).rejects.toThrow(/Beyond loopback/);
    },
    SLOW,
  );

  test(
    "with other settings is another server: the running one has to be stopped first",
    async () => {
      const site = new FakeSite();
      await site.start();
      await expect(site.start({ restarts: false })).rejects.toThrow(/already runs with other settings/);
    },
    SLOW,
  );
});

/** The process between supervisor and SkyRL: the marked one that is no `uv` and no engine. */
function guardOf(engine: number, folder: string): number {
  let pid = engine;
  for (;;) {
    const parent = Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ")[1]);
    if (!readFileSync(`/proc/${parent}/environ`, "utf8").includes(`RLCLI_SERVER=${folder}\0`)) return pid;
    pid = parent;
  }
}
