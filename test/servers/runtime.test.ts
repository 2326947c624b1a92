/** Supervision, with real processes of the bundled server. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ownIdentity, processIdentity, signalProcess } from "../../src/process.ts";
import { type EnsureOptions, ensureEmbedded } from "../../src/servers/embedded/ensure.ts";
import { freePort } from "../../src/servers/ports.ts";
import {
  listUsers,
  readRuntime,
  registerUser,
  type ServerRuntime,
  stopServer,
  unregister,
} from "../../src/servers/runtime.ts";
import { copyOfTinyQwen3, temporaryFolder } from "./embedded/support.ts";

const cacheFolder = join(tmpdir(), "rlcli-test-cache");
let folder: string;
beforeEach(() => {
  folder = join(temporaryFolder(), "server");
});
afterEach(() => {
  const found = readRuntime(folder);
  if (found.state === "running") signalProcess(found.runtime.process, "SIGKILL");
});

const start = (changes: Partial<EnsureOptions> = {}) =>
  ensureEmbedded({ folder, model: "builtin:tiny", cacheFolder, ...changes });

async function call(runtime: ServerRuntime, path: string, body?: unknown) {
  const response = await fetch(`${runtime.url}/api/v1${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { Authorization: `Bearer ${runtime.token}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as Record<string, never>;
}

async function kill(runtime: ServerRuntime): Promise<void> {
  signalProcess(runtime.process, "SIGKILL");
  while (processIdentity(runtime.process.pid)?.startTime === runtime.process.startTime) await delay(10);
}

describe("a server", () => {
  test("is never, running, stopped, running again", async () => {
    expect(readRuntime(folder)).toEqual({ state: "never" });
    const phases: string[] = [];
    const runtime = await start({ onPhase: (text) => phases.push(text) });
    expect(phases).toEqual(["starting the embedded server", "loading builtin:tiny"]);
    expect(readRuntime(folder)).toEqual({ state: "running", runtime });
    expect(runtime.token).toMatch(/^tml-.{32}/);
    expect(await call(runtime, "/healthz")).toEqual({ status: "ok", serverRun: runtime.serverRun });
    expect(await start()).toEqual(runtime);
    expect((await stopServer(folder, { timeoutMs: 60_000 })).state).toBe("running");
    expect(readRuntime(folder)).toEqual({ state: "stopped", at: expect.any(String) });
    expect((await stopServer(folder, { timeoutMs: 60_000 })).state).toBe("stopped");
    const second = await start();
    expect(second.serverRun).not.toBe(runtime.serverRun);
    expect(readRuntime(folder).state).toBe("running");
    expect(existsSync(join(folder, "stopped.json"))).toBe(false);
  });

  test("keeps its token in one file that only the user can read", async () => {
    const { token } = await start();
    expect(statSync(join(folder, "runtime.json")).mode & 0o777).toBe(0o600);
    const holding = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && readFileSync(join(entry.parentPath, entry.name)).includes(token))
      .map(({ name }) => name);
    expect(holding).toEqual(["runtime.json"]);
    await stopServer(folder, { timeoutMs: 60_000 });
    expect(existsSync(join(folder, "runtime.json"))).toBe(false);
  });

  test("is one for callers that race, in one process and in several", async () => {
    const here = await Promise.all([start(), start(), start()]);
    expect(new Set(here.map(({ serverRun }) => serverRun)).size).toBe(1);
    await kill(here[0]!);
    const starters = await Promise.all([1, 2, 3].map(() => startElsewhere(folder)));
    expect(new Set(starters).size).toBe(1);
    const found = readRuntime(folder);
    expect(found.state === "running" && found.runtime.serverRun).toBe(starters[0]);
  });

  test("that was killed has died, says its last words, and can be started again", async () => {
    const runtime = await start();
    await kill(runtime);
    const found = readRuntime(folder);
    expect(found).toMatchObject({ state: "died", pid: runtime.process.pid });
    expect(found.state === "died" && found.logTail).toMatch(/serving builtin:tiny/);
    expect((await start()).serverRun).not.toBe(runtime.serverRun);
  });

  test("with the marker of its own run has stopped, also if it was killed before it was done", async () => {
    const runtime = await start();
    await kill(runtime);
    const marker = { formatVersion: 1, at: "2026-01-01T00:00:00Z", serverRun: runtime.serverRun, reason: "idle" };
    writeFileSync(join(folder, "stopped.json"), JSON.stringify(marker));
    expect(readRuntime(folder)).toEqual({ state: "stopped", at: marker.at });
    writeFileSync(join(folder, "stopped.json"), JSON.stringify({ ...marker, serverRun: "another" }));
    expect(readRuntime(folder).state).toBe("died");
  });

  test("on its way out is waited for and followed by another", async () => {
    const runtime = await start();
    signalProcess(runtime.process, "SIGTERM");
    await expect.poll(() => readFileSync(join(folder, "log.txt"), "utf8")).toContain("SIGTERM: stopping");
    const next = await start();
    expect(next.serverRun).not.toBe(runtime.serverRun);
    expect(processIdentity(runtime.process.pid)?.startTime).not.toBe(runtime.process.startTime);
    expect(await call(next, "/healthz")).toMatchObject({ serverRun: next.serverRun });
  });

  test("stops by itself when idle, but not while a session is alive", async () => {
    // Long enough for a session to begin on a busy machine.
    const runtime = await start({ idleTimeoutSeconds: 4 });
    const { session_id } = await call(runtime, "/create_session", { tags: [] });
    await delay(6000);
    expect(readRuntime(folder).state).toBe("running");
    await fetch(`${runtime.url}/api/v1/sessions/${session_id}/finish`, {
      method: "POST",
      headers: { "X-API-Key": runtime.token },
      body: "{}",
    });
    await expect.poll(() => readRuntime(folder).state, { timeout: 60_000 }).toBe("stopped");
    expect(readFileSync(join(folder, "log.txt"), "utf8")).toMatch(/idle for 4 s: stopping/);
  });

  test("finishes the request that runs when it is told to stop", async () => {
    const runtime = await start();
    const { session_id } = await call(runtime, "/create_session", { tags: [] });
    const body = { session_id, model_seq_id: 0, base_model: "builtin:tiny" };
    const { request_id, model_id } = await call(runtime, "/create_model", body);
    await call(runtime, "/retrieve_future", { request_id });
    const tokens = new Array(900).fill(7);
    const data = [1, 2, 3].map(() => ({
      model_input: { chunks: [{ type: "encoded_text", tokens }] },
      loss_fn_inputs: { target_tokens: { data: tokens } },
    }));
    const forward_backward_input = { data, loss_fn: "cross_entropy" };
    const pass = await call(runtime, "/forward_backward", { model_id, seq_id: 1, forward_backward_input });
    const result = call(runtime, "/retrieve_future", { request_id: pass.request_id });
    await delay(50);
    await stopServer(folder, { timeoutMs: 100_000 });
    expect(Object.keys(await result)).toContain("loss_fn_outputs");
    expect(readRuntime(folder).state).toBe("stopped");
  });
});

/** The server's run as a process of its own finds or starts it. */
async function startElsewhere(where: string): Promise<string> {
  const script = `
    const { rolldown } = await import("rolldown");
    const bundle = await rolldown({
      input: ${JSON.stringify(new URL("../../src/servers/embedded/ensure.ts", import.meta.url).pathname)},
      platform: "node", external: [/^node:/], logLevel: "silent",
      transform: { define: { "import.meta.url": ${JSON.stringify(JSON.stringify(new URL("../../dist/runtime.js", import.meta.url).href))} } },
    });
    const { output } = await bundle.generate({ format: "esm", codeSplitting: false });
    const { ensureEmbedded } = await import("data:text/javascript;base64," + Buffer.from(output[0].code).toString("base64"));
    const { serverRun } = await ensureEmbedded(${JSON.stringify({ folder: where, model: "builtin:tiny", cacheFolder })});
    process.stdout.write(serverRun);
    process.exit(0);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", script], {
    cwd: new URL("../..", import.meta.url).pathname,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const closed = once(child, "close");
  const chunks: Buffer[] = [];
  for await (const chunk of child.stdout) chunks.push(chunk as Buffer);
  await closed;
  return Buffer.concat(chunks).toString();
}

describe("a start that fails says why", () => {
  test("a port in use", async () => {
    const port = await freePort();
    const blocker = createServer().listen(port, "127.0.0.1");
    await once(blocker, "listening");
    await expect(start({ port })).rejects.toThrow(new RegExp(`RL5004.*Port ${port}`));
    expect(readRuntime(folder).state).toBe("never");
    blocker.close();
    expect((await start({ port })).url).toBe(`http://127.0.0.1:${port}`);
  });

  test("a damaged model", async () => {
    const model = copyOfTinyQwen3();
    writeFileSync(join(model, "model.safetensors"), "no tensors");
    await expect(start({ model })).rejects.toThrow(/RL5002.*safetensors/);
    await expect(start({ model: "nowhere", baseFolder: "/tmp" })).rejects.toThrow(/RL5002.*\/tmp\/nowhere/);
    await expect(start({ model: "builtin:big" })).rejects.toThrow(/RL5001/);
  });

  test("a folder that cannot be used", async () => {
    const file = join(temporaryFolder(), "file");
    writeFileSync(file, "");
    await expect(start({ folder: join(file, "server") })).rejects.toThrow(/RL5007/);
  });

  test("a file that cannot be written", async () => {
    mkdirSync(join(folder, "log.txt"), { recursive: true });
    await expect(start()).rejects.toThrow(/RL5007.*log\.txt/);
    rmSync(join(folder, "log.txt"), { recursive: true });
    mkdirSync(join(folder, "runtime.json"));
    await expect(start()).rejects.toThrow(/RL5007.*runtime\.json/);
    rmSync(join(folder, "runtime.json"), { recursive: true });
    expect((await start()).url).toMatch(/^http/);
  });

  test("another model or port than what runs", async () => {
    await start();
    await expect(start({ model: copyOfTinyQwen3() })).rejects.toThrow(/RL5008.*builtin:tiny/);
    await expect(start({ port: 1 })).rejects.toThrow(/RL5008.*port/);
  });
});

describe("users", () => {
  test("hold a stop back while they live, unless it is forced", async () => {
    const runtime = await start();
    const child = spawn(process.execPath, ["-e", "setTimeout(() => {}, 60000)"]);
    const identity = processIdentity(child.pid!)!;
    registerUser(folder, { address: "run.agent", process: identity });
    const own = registerUser(folder, { address: "run.own", process: ownIdentity() });
    expect(listUsers(folder).length).toBe(2);
    await expect(stopServer(folder, { timeoutMs: 1000 })).rejects.toThrow(/RL5005.*run\.agent \(pid \d+\)/);
    unregister(own);
    expect(listUsers(folder).map(({ address }) => address)).toEqual(["run.agent"]);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(listUsers(folder)).toEqual([]);
    await stopServer(folder, { timeoutMs: 60_000 });
    expect(readRuntime(folder).state).toBe("stopped");
    expect(processIdentity(runtime.process.pid)).toBeUndefined();
  });

  test("a server that does not stop is left alone, or killed if forced", async () => {
    const runtime = await start();
    signalProcess(runtime.process, "SIGSTOP");
    await expect(stopServer(folder, { timeoutMs: 200 })).rejects.toThrow(/RL5006/);
    expect(readRuntime(folder).state).toBe("running");
    await stopServer(folder, { timeoutMs: 200, force: true });
    expect(readRuntime(folder).state).toBe("stopped");
  });
});
