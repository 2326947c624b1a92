/** Checkpoints of the embedded server read by transformers and peft: they compute what the server computes. */
import { rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ensureBuiltinModel } from "../../src/servers/builtin.ts";
import { checkpointFolder, parseCheckpointPath } from "../../src/servers/checkpoints.ts";
import {
  bytesOf,
  cacheFolder,
  passBody,
  startTestServer,
  stepBody,
  type TestServer,
  wireDatum,
} from "../servers/embedded/server.ts";
import { hasPython, runPython } from "./environment.ts";

const TEXT = "hello world";
const adapters = [
  { name: "attention, MLP and unembedding", lora: { rank: 4, train_unembed: true } },
  { name: "the MLP alone", lora: { rank: 3, train_attn: false } },
];

describe.skipIf(!hasPython)("transformers and peft", () => {
  let server: TestServer;
  beforeAll(async () => {
    server = await startTestServer({ slots: 8 });
  });
  afterAll(async () => {
    await server.server.close();
    rmSync(server.folder, { recursive: true, force: true });
  });

  /** A model trained a little; its checkpoint's folder, and its own log-probabilities of the text. */
  async function trained(lora_config: object | null, kind: "weights" | "sampler_weights") {
    const session_id = await server.newSession();
    const made = { session_id, model_seq_id: 0, base_model: "builtin:tiny", lora_config };
    const { model_id } = await server.run("/create_model", made);
    for (let step = 0; step < 4; step++) {
      await server.run("/forward_backward", passBody(model_id, undefined, [TEXT, "abc"]));
      await server.run("/optim_step", stepBody(model_id, undefined, 0.01));
    }
    const call = kind === "weights" ? "/save_weights" : "/save_weights_for_sampler";
    const { path } = await server.run(call, { model_id, path: "end" });
    const forward_input = { data: [wireDatum(bytesOf(TEXT))], loss_fn: "cross_entropy" };
    const pass = await server.run("/forward", { model_id, forward_input });
    const logprobs: number[] = pass.loss_fn_outputs[0].logprobs.data;
    return { folder: checkpointFolder(server.folder, parseCheckpointPath(path)!), logprobs };
  }

  const apart = (a: readonly number[], b: readonly number[]) =>
    a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);

  test.each(adapters)("an adapter of $name, and a whole model", { timeout: 300_000 }, async ({ lora }) => {
    const adapter = await trained(lora, "sampler_weights");
    const whole = await trained(null, "weights");
    const base = ensureBuiltinModel("builtin:tiny", cacheFolder);
    const order = { base, adapter: adapter.folder, whole: whole.folder, tokens: bytesOf(TEXT) };
    const { code, stdout, stderr } = await runPython("checkpoints.py", [JSON.stringify(order)], { timeoutMs: 280_000 });
    expect(code, stderr).toBe(0);
    const found = JSON.parse(stdout);
    expect(apart(found.adapter, adapter.logprobs)).toBeLessThan(1e-4);
    expect(apart(found.whole, whole.logprobs)).toBeLessThan(1e-4);
    expect(apart(found.base, adapter.logprobs)).toBeGreaterThan(0.05);
    expect(found.tokenized).toEqual(bytesOf("abc"));
  });
});
