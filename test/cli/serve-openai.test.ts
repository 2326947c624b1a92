/** `rlcli serve openai` over a server that is not ours and has few places: what is loaded for it is freed again. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import OpenAI from "openai";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { cacheFolder } from "../servers/embedded/server.ts";
import { FakeServer } from "../tinker/fake-server.ts";
import { ToyModel } from "../tinker/toy-model.ts";

const program = fileURLToPath(new URL("../../bin/rlcli.js", import.meta.url));
let server: FakeServer;
let folder: string;
let child: ChildProcess;
let errors = "";

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-openai-"));
  server = await new FakeServer().start();
  server.script = () => ({ tokens: [...Buffer.from("yes")], stop: "stop" });
});
afterEach(async () => {
  child.kill("SIGTERM");
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function start(...args: string[]): Promise<OpenAI> {
  const where = ["serve", "openai", "--base-url", server.url, "--model", "builtin:tiny", "--port", "0", "--json"];
  child = spawn(process.execPath, [program, ...where, ...args], {
    cwd: folder,
    env: { ...process.env, RLCLI_CACHE: cacheFolder },
  });
  errors = "";
  child.stderr!.on("data", (text) => {
    errors += text;
  });
  const [line] = (await once(child.stdout!, "data")) as [Buffer];
  return new OpenAI({ baseURL: JSON.parse(line.toString()).url, apiKey: "none", maxRetries: 0 });
}

function keep(path: string): string {
  server.checkpoints.set(path, {
    model: new ToyModel(),
    path,
    type: path.includes("/weights/") ? "training" : "sampler",
  });
  return path;
}

const ask = (client: OpenAI, model: string, more: object = {}) =>
  client.chat.completions
    .create({ model, messages: [{ role: "user", content: "x" }], max_tokens: 5, ...more })
    .then(({ choices }) => choices[0]!.message.content);

test("training weights on SkyRL take a place while they are used, the oldest first makes room, and none is left behind", async () => {
  server.skyrl = "jax";
  const paths = [1, 2, 3].map((i) => keep(`tinker://m-${i}/weights/x`));
  const client = await start("--max-loaded", "1");
  for (const path of [...paths, paths[2]!]) expect(await ask(client, path)).toBe("yes");
  expect(server.count("/create_model")).toBe(3);
  await vi.waitFor(() => expect(server.count("/unload_model")).toBe(2), { timeout: 60_000 });
  child.kill("SIGTERM");
  await once(child, "exit");
  expect(server.count("/unload_model")).toBe(3);
  expect(errors).toBe("");
});

test("a server that forgets everything is asked anew, and many at once get their answers", async () => {
  const path = keep("tinker://m-1/sampler_weights/x");
  const client = await start();
  expect(await ask(client, path)).toBe("yes");
  server.forget();
  expect(await ask(client, path, { n: 20 })).toBe("yes");
  expect(await Promise.all(Array.from({ length: 40 }, () => ask(client, path)))).toEqual(Array(40).fill("yes"));
  expect(errors).toBe("");
});

test("a wrong name is the client's mistake; a server that has gone away is told soon", async () => {
  const client = await start();
  await expect(ask(client, "tinker://nonsense")).rejects.toMatchObject({ status: 404, code: "model_not_found" });
  expect(await ask(client, "builtin:tiny")).toBe("yes");
  await server.stop();
  const startedAt = performance.now();
  await expect(ask(client, "builtin:tiny")).rejects.toMatchObject({ status: 503 });
  expect(performance.now() - startedAt).toBeLessThan(60_000);
});
