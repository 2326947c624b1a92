// `rlcli sample` from weights of a server that is not ours: training weights go into a model of their own, which goes again.
import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, expect, test } from "vitest";
import { FakeServer } from "../tinker/fake-server.ts";
import { ToyModel } from "../tinker/toy-model.ts";
import { tinyFolder } from "../training/order.ts";

const program = fileURLToPath(new URL("../../bin/rlcli.js", import.meta.url));
let server: FakeServer;
let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-sample-"));
  server = await new FakeServer().start();
  server.script = () => ({ tokens: [70, 71], stop: "length" });
});
afterEach(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function sample(path: string): Promise<string> {
  const type = path.includes("/weights/") ? "training" : "sampler";
  server.checkpoints.set(path, { model: new ToyModel(), path, type });
  const where = ["--base-url", server.url, "--model", tinyFolder, "--checkpoint", path];
  const flags = ["--prompt", "hi", "--max-tokens", "2", "--json"];
  const { stdout } = await promisify(execFile)(process.execPath, [program, "sample", ...where, ...flags], {
    cwd: folder,
  });
  return stdout;
}

test.each([undefined, "jax"] as const)("training weights are loaded, sampled and unloaded (%s)", async (skyrl) => {
  server.skyrl = skyrl;
  expect(JSON.parse(await sample("tinker://m-1/weights/x"))).toMatchObject({ tokens: [70, 71], stopReason: "length" });
  expect(server.count("/unload_model")).toBe(1);
  expect(server.models.size).toBe(0);
  expect(server.checkpoints.size).toBe(1);
});

test("sampler weights are sampled as they are", async () => {
  await sample("tinker://m-1/sampler_weights/x");
  expect(server.requests.find((r) => r.path === "/create_sampling_session")!.body.model_path).toBe(
    "tinker://m-1/sampler_weights/x",
  );
  expect(server.count("/create_model")).toBe(0);
});
