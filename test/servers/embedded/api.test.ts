import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { bytesOf, passBody, startTestServer, stepBody, type TestServer, TOKEN, wireDatum } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ slots: 64 });
});
afterAll(async () => {
  await server.server.close();
  rmSync(server.folder, { recursive: true, force: true });
  expect(server.faults).toEqual([]);
});

describe("HTTP", () => {
  test("a key is needed, in either header", async () => {
    const ask = (headers: Record<string, string>) =>
      fetch(`${server.server.url}/api/v1/healthz`, { headers }).then(({ status }) => status);
    expect(await ask({})).toBe(401);
    expect(await ask({ "X-API-Key": `${TOKEN}x` })).toBe(401);
    expect(await ask({ "X-API-Key": "" })).toBe(401);
    expect(await ask({ Authorization: TOKEN })).toBe(401);
    expect(await ask({ "X-API-Key": TOKEN })).toBe(200);
    expect(await ask({ Authorization: `Bearer ${TOKEN}` })).toBe(200);
  });

  test("healthz names the run of the server", async () => {
    expect((await server.call("GET", "/healthz")).body).toEqual({ status: "ok", serverRun: "0123456789abcdef" });
  });

  test.each([
    { name: "an unknown route", method: "GET", path: "/nothing", status: 404 },
    { name: "another method", method: "GET", path: "/create_session", status: 405 },
    { name: "no JSON", method: "POST", path: "/create_session", body: "{", status: 422 },
    { name: "no object", method: "POST", path: "/create_session", body: "[1]", status: 422 },
    { name: "a missing field", method: "POST", path: "/session_heartbeat", body: "{}", status: 422 },
    { name: "an unknown session", method: "POST", path: "/session_heartbeat", body: '{"session_id":"x"}', status: 404 },
    { name: "an unknown model", method: "POST", path: "/get_info", body: '{"model_id":"x"}', status: 404 },
    { name: "an unknown future", method: "POST", path: "/retrieve_future", body: '{"request_id":"7"}', status: 404 },
    {
      name: "a body beyond the limit",
      method: "POST",
      path: "/create_session",
      body: `"${"x".repeat(1e6)}"`,
      status: 413,
    },
  ])("$name is $status with a detail", async ({ method, path, body, status }) => {
    const answer = await server.call(method, path, body);
    expect(answer.status).toBe(status);
    expect(answer.body.detail).toBeTruthy();
  });

  test("hundreds of requests at once are answered, also while a shape compiles", async () => {
    const { model } = await server.newModel();
    const training = server.run("/forward_backward", passBody(model, 1, ["x".repeat(400)]));
    const started = performance.now();
    const statuses = await Promise.all(Array.from({ length: 500 }, () => server.call("GET", "/healthz")));
    const tookMs = performance.now() - started;
    expect(statuses.every(({ status }) => status === 200)).toBe(true);
    expect(tookMs).toBeLessThan(100_000);
    expect((await training).loss_fn_outputs.length).toBe(1);
  });
});

describe("a model", () => {
  test("is made, described, and made once however often it is asked for", async () => {
    const session = await server.newSession();
    const body = { session_id: session, model_seq_id: 3, base_model: "builtin:tiny", lora_config: null };
    const first = await server.post("/create_model", body);
    expect(first.model_id).toBe(`${session}:train:3`);
    expect(await server.post("/create_model", body)).toEqual(first);
    expect((await server.call("POST", "/create_model", { ...body, lora_config: { rank: 2 } })).status).toBe(409);
    expect((await server.outcome(first)).model_id).toBe(`${session}:train:3`);
    const info = await server.post("/get_info", { model_id: first.model_id });
    expect(info).toMatchObject({ model_id: first.model_id, status: "created", is_lora: false });
    expect(readdirSync(info.model_data.model_name)).toContain("tokenizer.json");
  });

  test.each([
    { name: "another base model", changes: { base_model: "Qwen/Qwen3-4B" }, status: 400 },
    { name: "another optimizer", changes: { optimizer_config: { type: "dimuon" } }, status: 400 },
    { name: "a rank beyond the model", changes: { lora_config: { rank: 1000 } }, status: 422 },
    {
      name: "an adapter of nothing",
      changes: { lora_config: { rank: 2, train_mlp: false, train_attn: false, train_unembed: false } },
      status: 400,
    },
    { name: "another role", changes: { model_role: "judge" }, status: 422 },
  ])("$name is refused", async ({ changes, status }) => {
    const session_id = await server.newSession();
    const body = { session_id, model_seq_id: 0, base_model: "builtin:tiny", ...changes };
    expect((await server.call("POST", "/create_model", body)).status).toBe(status);
  });

  test("beyond the slots fails and says so; unloading makes room", async () => {
    const small = await startTestServer({ slots: 1 });
    const { model } = await small.newModel();
    const session_id = await small.newSession();
    const body = { session_id, model_seq_id: 0, base_model: "builtin:tiny" };
    const failed = await small.run("/create_model", body);
    expect(failed).toMatchObject({ category: "user", error: expect.stringContaining("All 1 model slots") });
    expect(await small.run("/unload_model", { model_id: model })).toMatchObject({ status: "unloaded" });
    expect(await small.run("/create_model", { ...body, model_seq_id: 1 })).toMatchObject({
      base_model: "builtin:tiny",
    });
    const late = await small.run("/forward_backward", passBody(model, 1, ["abc"]));
    expect(late).toMatchObject({ category: "user", error: expect.stringContaining("not loaded") });
    await small.server.close();
  });
});

describe("training", () => {
  test("learns, and reports logprobs, losses and metrics in the wire's shape", async () => {
    const { model } = await server.newModel();
    const losses: number[] = [];
    for (let step = 0; step < 8; step++) {
      const pass = await server.run("/forward_backward", passBody(model, step * 2 + 1, ["hello world", "abc"]));
      expect(pass.loss_fn_outputs[0].logprobs).toMatchObject({ dtype: "float32", shape: [10] });
      const sum = pass.loss_fn_outputs.flatMap(
        (o: never) => (o as { elementwise_loss: { data: number[] } }).elementwise_loss.data,
      );
      expect(pass.metrics["loss:sum"]).toBeCloseTo(
        sum.reduce((a: number, b: number) => a + b, 0),
        3,
      );
      losses.push(pass.metrics["loss:sum"]);
      const step_ = await server.run("/optim_step", stepBody(model, step * 2 + 2, 3e-3));
      expect(step_.metrics.grad_norm).toBeGreaterThan(0);
    }
    expect(losses.at(-1)).toBeLessThan(losses[0]! * 0.7);
  });

  test("forward leaves no gradient", async () => {
    const { model } = await server.newModel();
    const { forward_backward_input, ...rest } = passBody(model, 1, ["abc"]);
    const pass = await server.run("/forward", { ...rest, forward_input: forward_backward_input });
    expect(pass.loss_fn_outputs[0].logprobs.data.length).toBe(2);
    expect((await server.run("/optim_step", stepBody(model, 2))).metrics.grad_norm).toBe(0);
  });

  test("LoRA trains through the same calls, saves and loads", async () => {
    const { model, session } = await server.newModel(4);
    const [first] = await trainSteps(model, 1, 3);
    const saved = await server.run("/save_weights", { model_id: model, seq_id: 7, path: "s" });
    const info = await server.post("/weights_info", { tinker_path: saved.path });
    expect(info).toMatchObject({ base_model: "builtin:tiny", is_lora: true, lora_rank: 4 });
    const [again] = await trainSteps(model, 8, 1);
    expect(again).toBeLessThan(first!);
    const loaded = await server.run("/load_weights", {
      session_id: session,
      model_seq_id: 1,
      path: saved.path,
      optimizer: true,
    });
    expect(await trainSteps(loaded.model_id, 1, 1)).toEqual([again]);
    const full = await server.newModel();
    const misfit = await server.run("/load_weights", { model_id: full.model, seq_id: 1, path: saved.path });
    expect(misfit).toMatchObject({ category: "user", error: expect.stringContaining("rank 4") });
  });

  const datum = (changes: Record<string, unknown>) => wireDatum([1, 2, 3], changes);
  test.each([
    { name: "no datum", data: [], status: 400 },
    { name: "an empty datum", data: [wireDatum([1])], status: 400 },
    { name: "no targets", data: [datum({ target_tokens: undefined })], status: 422 },
    { name: "too few targets", data: [datum({ target_tokens: { data: [1] } })], status: 400 },
    { name: "too many weights", data: [datum({ weights: { data: [1, 1, 1] } })], status: 400 },
    { name: "a target beyond the vocabulary", data: [datum({ target_tokens: { data: [2, 272] } })], status: 422 },
    { name: "a negative token", data: [wireDatum([-1, 2, 3])], status: 422 },
    { name: "half a token", data: [wireDatum([1.5, 2, 3])], status: 422 },
    { name: "a weight that is null", data: [datum({ weights: { data: [1, null] } })], status: 422 },
    { name: "a weight beyond float32", data: [datum({ weights: { data: [1, 1e300] } })], status: 400 },
    { name: "a misspelt tensor", data: [datum({ weigths: { data: [1, 1] } })], status: 422 },
    { name: "another shape", data: [datum({ weights: { data: [1, 1], shape: [1, 2] } })], status: 400 },
    { name: "a sparse tensor", data: [datum({ weights: { data: [1, 1], sparse_crow_indices: [0] } })], status: 422 },
    { name: "a sequence beyond the context", data: [wireDatum(new Array(1026).fill(5))], status: 400 },
    { name: "data that is no list", data: "x", status: 422 },
    { name: "another loss", data: [datum({})], loss_fn: "nothing", status: 422 },
    { name: "an unknown option", data: [datum({})], loss_fn_config: { clip: 1 }, status: 422 },
    {
      name: "an image",
      data: [{ ...(datum({}) as object), model_input: { chunks: [{ type: "image", data: "", format: "png" }] } }],
      status: 422,
    },
  ])("$name is refused with $status, and takes no place in the order", async ({ status, data, ...rest }) => {
    const { model } = await shared();
    const input = { loss_fn: "cross_entropy", data, ...rest };
    const answer = await server.call("POST", "/forward_backward", {
      model_id: model,
      seq_id: 1,
      forward_backward_input: input,
    });
    expect(answer.status, JSON.stringify(answer.body)).toBe(status);
  });

  test("what was refused has poisoned nothing", async () => {
    const { model } = await shared();
    const reference = await server.newModel();
    expect(await trainSteps(model, 1, 2)).toEqual(await trainSteps(reference.model, 1, 2));
  });

  test.each([
    { learning_rate: -1 },
    { beta1: 1 },
    { eps: 0 },
    { weight_decay: -0.1 },
    { grad_clip_norm: -1 },
    { learning_rate: "fast" },
  ])("AdamW refuses %j", async (adam_params) => {
    const { model } = await shared();
    expect((await server.call("POST", "/optim_step", { model_id: model, adam_params })).status).toBe(422);
  });

  let one: Promise<{ model: string }> | undefined;
  const shared = () => {
    one ??= server.newModel();
    return one;
  };
});

/** Losses of `steps` steps from sequence number `seq` on. */
async function trainSteps(model: string, seq: number, steps: number): Promise<number[]> {
  const losses: number[] = [];
  for (let step = 0; step < steps; step++) {
    const pass = await server.run("/forward_backward", passBody(model, seq + step * 2, ["hello", "what"]));
    await server.run("/optim_step", stepBody(model, seq + step * 2 + 1, 3e-3));
    losses.push(pass.metrics["loss:sum"]);
  }
  return losses;
}

describe("the order of a model's calls", () => {
  test("is that of seq_id, whatever order they come in: an optimizer step never overtakes", async () => {
    const [a, b] = [await server.newModel(), await server.newModel()];
    const bodies = (model: string) =>
      [
        ["/forward_backward", passBody(model, 1, ["one"])],
        ["/forward_backward", passBody(model, 2, ["three"])],
        ["/optim_step", stepBody(model, 3, 0.01)],
        ["/forward_backward", passBody(model, 4, ["one"])],
        ["/optim_step", stepBody(model, 5, 0.01)],
      ] as const;
    const inOrder = [];
    for (const [path, body] of bodies(a.model)) inOrder.push(await server.run(path, body));
    const submitted = new Map<number, { request_id: string }>();
    for (const i of [4, 3, 1, 2, 0]) {
      const [path, body] = bodies(b.model)[i]!;
      submitted.set(i, await server.post(path, body));
    }
    for (const i of [0, 1, 2, 3, 4]) expect(await server.outcome(submitted.get(i)!)).toEqual(inOrder[i]);
  });

  test("waits for a missing number and says for which", async () => {
    const quick = await startTestServer({ holdMs: 100 });
    const { model } = await quick.newModel();
    const second = await quick.post("/optim_step", stepBody(model, 2));
    const waiting = await quick.post("/retrieve_future", { request_id: second.request_id });
    expect(waiting).toMatchObject({ type: "try_again", queue_state: "active" });
    expect(waiting.queue_state_reason).toMatch(/sequence number 1/);
    await quick.run("/forward_backward", passBody(model, 1, ["abc"]));
    expect((await quick.outcome(second)).metrics.grad_norm).toBeGreaterThan(0);
    await quick.server.close();
  });

  test("a repeat is the same request, applied once; other content is a conflict", async () => {
    const { model } = await server.newModel();
    const first = await server.post("/forward_backward", passBody(model, 1, ["abc"]));
    const results = [await server.outcome(first)];
    const again = await server.post("/forward_backward", passBody(model, 1, ["abc"]));
    expect(again).toEqual(first);
    results.push(await server.outcome(again));
    expect(results[0]).toEqual(results[1]);
    const other = await server.call("POST", "/forward_backward", passBody(model, 1, ["abd"]));
    expect(other.status).toBe(409);
    const step = await server.post("/optim_step", stepBody(model, 2));
    expect(await server.post("/optim_step", stepBody(model, 2))).toEqual(step);
    const reference = await server.newModel();
    await server.run("/forward_backward", passBody(reference.model, 1, ["abc"]));
    expect(await server.outcome(step)).toEqual(await server.run("/optim_step", stepBody(reference.model, 2)));
  });

  test("calls without a number run in the order they come", async () => {
    const { model } = await server.newModel();
    const futures = [
      await server.post("/forward_backward", passBody(model, undefined, ["abc"])),
      await server.post("/optim_step", stepBody(model, undefined)),
      await server.post("/optim_step", stepBody(model, undefined)),
    ];
    const norms = [];
    for (const future of futures.slice(1)) norms.push((await server.outcome(future)).metrics.grad_norm);
    expect(norms[0]).toBeGreaterThan(0);
    expect(norms[1]).toBe(0);
  });
});

describe("weights", () => {
  test("loading goes on bit for bit, with optimizer; without it the moments are fresh", async () => {
    const { model, session } = await server.newModel();
    await trainSteps(model, 1, 3);
    const saved = await server.run("/save_weights", { model_id: model, seq_id: 7, path: "three" });
    expect(saved.path).toBe(`tinker://${model}/weights/three`);
    const expected = await trainSteps(model, 8, 3);
    const load = (seq: number, optimizer: boolean) =>
      server.run("/load_weights", { session_id: session, model_seq_id: seq, path: saved.path, optimizer });
    expect(await trainSteps((await load(1, true)).model_id, 1, 3)).toEqual(expected);
    const fresh = await trainSteps((await load(2, false)).model_id, 1, 3);
    expect(fresh[0]).toBe(expected[0]);
    expect(fresh[2]).not.toBe(expected[2]);
    const back = await server.run("/load_weights", { model_id: model, seq_id: 14, path: saved.path, optimizer: true });
    expect(back).toMatchObject({ path: saved.path, type: "load_weights" });
    expect(await trainSteps(model, 15, 3)).toEqual(expected);
  });

  test("a name is given once; listing, deleting and overwriting work", async () => {
    const { model } = await server.newModel();
    const save = (name: string, more = {}) =>
      server.call("POST", "/save_weights", { model_id: model, path: name, ...more });
    const first = (await save("a")).body;
    expect((await save("a")).status).toBe(409);
    await server.outcome(first);
    expect((await save("a")).status).toBe(409);
    expect((await save("a/b")).status).toBe(422);
    await server.outcome((await save("a", { overwrite: true })).body);
    await server.run("/save_weights_for_sampler", { model_id: model, path: "a", user_metadata: { note: "x" } });
    const { checkpoints } = (await server.call("GET", `/training_runs/${model}/checkpoints`)).body;
    expect(checkpoints.map((c: { checkpoint_id: string }) => c.checkpoint_id)).toEqual([
      "weights/a",
      "sampler_weights/a",
    ]);
    expect(checkpoints[1]).toMatchObject({ checkpoint_type: "sampler", user_metadata: { note: "x" }, public: false });
    expect(checkpoints[0].size_bytes).toBeGreaterThan(checkpoints[1].size_bytes);
    const run = (await server.call("GET", `/training_runs/${encodeURIComponent(model)}`)).body;
    expect(run).toMatchObject({ training_run_id: model, last_checkpoint: checkpoints[0], is_lora: false });
    const path = `/training_runs/${model}/checkpoints/weights/a`;
    expect((await server.call("DELETE", path)).status).toBe(204);
    expect((await server.call("DELETE", path)).status).toBe(404);
    expect(
      (await server.call("POST", "/weights_info", { tinker_path: first.path ?? "tinker://x/weights/a" })).status,
    ).toBe(404);
    const { cursor } = (await server.call("GET", "/training_runs?limit=1")).body;
    expect(cursor.total_count).toBeGreaterThan(1);
  });

  test("damaged checkpoints and wrong paths fail clearly", async () => {
    const { model } = await server.newModel();
    const { path } = await server.run("/save_weights", { model_id: model, path: "broken" });
    const file = join(server.folder, "checkpoints", model.replaceAll(":", "_"), "weights/broken/model.safetensors");
    const bytes = readFileSync(file);
    bytes[bytes.length - 1]! ^= 1;
    writeFileSync(file, bytes);
    const failed = await server.run("/load_weights", { model_id: model, path });
    expect(failed).toMatchObject({ category: "user", error: expect.stringContaining("damaged") });
    const load = (text: string) => server.call("POST", "/load_weights", { model_id: model, path: text });
    expect((await load("tinker://x/weights/none")).status).toBe(404);
    expect((await load(`tinker://${model}/sampler_weights/broken`)).status).toBe(400);
    expect((await load("tinker://../../weights/x")).status).toBe(400);
    expect((await load("broken")).status).toBe(400);
  });
});

describe("sampling", () => {
  const prompt = { chunks: [{ type: "encoded_text", tokens: bytesOf("hello") }] };
  const ask = (source: object, params: object, more = {}) =>
    server.run("/asample", {
      ...source,
      prompt,
      num_samples: 1,
      sampling_params: { max_tokens: 8, seed: 1, ...params },
      ...more,
    });

  test("snapshots stay as they were while training goes on, and after the model is gone", async () => {
    const { model, session } = await server.newModel();
    await trainSteps(model, 1, 2);
    const named = await server.run("/save_weights_for_sampler", { model_id: model, seq_id: 5, path: "s" });
    const unnamedBody = { model_id: model, seq_id: 6, sampling_session_seq_id: 0 };
    const unnamed = await server.run("/save_weights_for_sampler", unnamedBody);
    expect(unnamed).toMatchObject({ path: null, sampling_session_id: expect.any(String) });
    const byPath = { model_path: named.path };
    const bySession = { sampling_session_id: unnamed.sampling_session_id };
    const before = await ask(byPath, {});
    expect(await ask(bySession, {})).toEqual(before);
    expect(await ask({ base_model: "builtin:tiny" }, {})).not.toEqual(before);
    await trainSteps(model, 7, 2);
    expect(await ask(bySession, {})).toEqual(before);
    await server.run("/unload_model", { model_id: model });
    expect(await ask(byPath, {})).toEqual(before);
    const sampler = await server.post("/create_sampling_session", {
      session_id: session,
      sampling_session_seq_id: 1,
      model_path: named.path,
    });
    expect(await ask(sampler, {})).toEqual(before);
    const described = (await server.call("GET", `/samplers/${sampler.sampling_session_id}`)).body;
    expect(described).toMatchObject({ sampler_id: sampler.sampling_session_id, model_path: named.path });
    expect((await server.call("POST", `/sessions/${session}/finish`, {})).status).toBe(204);
    expect((await server.call("POST", "/asample", { ...bySession, prompt, sampling_params: {} })).status).toBe(404);
    expect(readdirSync(join(server.folder, "checkpoints", model.replaceAll(":", "_")))).not.toContain("unnamed");
  });

  test("null stops at the end of a turn, [] at nothing, strings and tokens where listed", async () => {
    const { model } = await server.newModel();
    const tokens = [...bytesOf("hello"), ...bytesOf("abcd"), 258, ...bytesOf("efgh")];
    const body = { model_id: model, forward_backward_input: { data: [wireDatum(tokens)], loss_fn: "cross_entropy" } };
    for (let i = 0; i < 40; i++) {
      await server.post("/forward_backward", body);
      await server.post("/optim_step", stepBody(model, undefined, 1e-2));
    }
    const { path } = await server.run("/save_weights_for_sampler", { model_id: model, path: "memorised" });
    const say = async (stop: unknown) => (await ask({ model_path: path }, { temperature: 0, stop })).sequences[0];
    expect(await say(null)).toMatchObject({ tokens: [...bytesOf("abcd"), 258], stop_reason: "stop" });
    expect(await say([])).toMatchObject({
      tokens: [...bytesOf("abcd"), 258, ...bytesOf("efg")],
      stop_reason: "length",
    });
    expect(await say([bytesOf("c")[0]])).toMatchObject({ tokens: bytesOf("abc"), stop_reason: "stop" });
    expect(await say(["bc", "zz"])).toMatchObject({ tokens: bytesOf("abc"), stop_reason: "stop" });
    expect(await say("<|im_end|>")).toMatchObject({ tokens: [...bytesOf("abcd"), 258], stop_reason: "stop" });
  });

  test("sequence ids, several samples, prompt log-probabilities", async () => {
    const body = { base_model: "builtin:tiny", prompt, num_samples: 3, prompt_logprobs: true };
    const submitted = await server.post("/asample", { ...body, sampling_params: { max_tokens: 4, seed: 5 } });
    expect(new Set(submitted.sample_sequence_ids).size).toBe(3);
    const result = await server.outcome(submitted);
    expect(result.sequences.length).toBe(3);
    expect(result.prompt_logprobs.length).toBe(5);
    expect(result.prompt_logprobs[0]).toBeNull();
    const second = await ask({ base_model: "builtin:tiny" }, { max_tokens: 4, seed: 6 });
    expect(second.sequences[0]).toEqual(result.sequences[1]);
  });

  test("a name that is used again stands for the new weights", async () => {
    const { model } = await server.newModel();
    const save = () => server.run("/save_weights_for_sampler", { model_id: model, path: "again" });
    const { path } = await save();
    const before = await ask({ model_path: path }, {});
    await trainSteps(model, 1, 2);
    await server.call("DELETE", `/training_runs/${model}/checkpoints/sampler_weights/again`);
    expect((await server.call("POST", "/asample", { model_path: path, prompt, sampling_params: {} })).status).toBe(404);
    await save();
    expect(await ask({ model_path: path }, {})).not.toEqual(before);
  });

  test("a repeated asample is one request", async () => {
    const session_id = await server.newSession();
    const made = { session_id, sampling_session_seq_id: 0, base_model: "builtin:tiny" };
    const { sampling_session_id } = await server.post("/create_sampling_session", made);
    expect(await server.post("/create_sampling_session", made)).toMatchObject({ sampling_session_id });
    const body = { sampling_session_id, seq_id: 0, prompt, sampling_params: { max_tokens: 4 } };
    const [first, again] = [await server.post("/asample", body), await server.post("/asample", body)];
    expect(again).toEqual(first);
    expect((await server.call("POST", "/asample", { ...body, num_samples: 2 })).status).toBe(409);
    const bothSources = { ...made, sampling_session_seq_id: 1, model_path: "tinker://x/sampler_weights/y" };
    expect((await server.call("POST", "/create_sampling_session", bothSources)).status).toBe(400);
  });

  test.each([
    { name: "an empty prompt", body: { prompt: { chunks: [] } }, status: 400 },
    {
      name: "a prompt as long as the context",
      body: { prompt: { chunks: [{ tokens: new Array(1024).fill(1) }] } },
      status: 400,
    },
    { name: "a billion samples", body: { num_samples: 1e9 }, status: 422 },
    { name: "no tokens wanted", body: { sampling_params: { max_tokens: 0 } }, status: 422 },
    { name: "negative temperature", body: { sampling_params: { temperature: -1 } }, status: 422 },
    { name: "top_p of 0", body: { sampling_params: { top_p: 0 } }, status: 422 },
    { name: "mixed stops", body: { sampling_params: { stop: [1, "x"] } }, status: 422 },
    { name: "stability info", body: { record_stability_info: true }, status: 400 },
    { name: "the last of no log-probabilities", body: { prompt_logprobs_last_n: 2 }, status: 422 },
    { name: "more than the prompt has", body: { prompt_logprobs: true, prompt_logprobs_last_n: 5 }, status: 422 },
    {
      name: "targets of another shape",
      body: { target_prompt_logprobs: { data: [1, 2], shape: [2, 1] } },
      status: 422,
    },
    {
      name: "targets beyond the vocabulary",
      body: { target_prompt_logprobs: { data: [1, 2, 3, 999], shape: [4, 1] } },
      status: 422,
    },
    {
      name: "an unknown checkpoint",
      body: { base_model: undefined, model_path: "tinker://x/sampler_weights/y" },
      status: 404,
    },
    { name: "training weights", body: { base_model: undefined, model_path: "tinker://x/weights/y" }, status: 400 },
  ])("$name is refused with $status", async ({ body, status }) => {
    const answer = await server.call("POST", "/asample", {
      base_model: "builtin:tiny",
      prompt,
      sampling_params: {},
      ...body,
    });
    expect(answer.status, JSON.stringify(answer.body)).toBe(status);
  });
});

describe("sessions", () => {
  test("are listed, and end their models when they finish", async () => {
    const { session, model } = await server.newModel();
    expect((await server.call("GET", "/sessions?limit=100")).body.sessions).toContain(session);
    const described = (await server.call("GET", `/sessions/${session}`)).body;
    expect(described).toMatchObject({ training_run_ids: [model], user_metadata: { who: "test" }, status: "live" });
    const waiting = await server.post("/optim_step", stepBody(model, 2));
    await server.call("POST", `/sessions/${session}/finish`, { reason: { type: "success" }, detail: null });
    expect(await server.outcome(waiting)).toMatchObject({ error: expect.stringContaining("not loaded") });
    expect((await server.call("POST", "/session_heartbeat", { session_id: session })).status).toBe(410);
    expect((await server.call("POST", "/optim_step", stepBody(model, 1))).status).toBe(410);
  });

  test("without a heartbeat expire; a heartbeat keeps them", async () => {
    const quick = await startTestServer({ sessionTimeoutMs: 5000, slots: 2 });
    const kept = await quick.newModel();
    const beat = () => quick.post("/session_heartbeat", { session_id: kept.session });
    await beat();
    const lost = await quick.newModel();
    const statusOf = async (session: string) => {
      await beat();
      return (await quick.call("GET", `/sessions/${session}`)).body.status;
    };
    await expect.poll(() => statusOf(lost.session), { timeout: 60_000, interval: 300 }).toBe("expired");
    expect((await quick.call("POST", "/session_heartbeat", { session_id: lost.session })).status).toBe(410);
    expect((await quick.run("/forward_backward", passBody(kept.model, 1, ["abc"]))).metrics).toBeTruthy();
    await quick.newModel();
    await quick.server.close();
  });

  test("checkpoints and sampler weights survive the server", async () => {
    const first = await startTestServer();
    const { model } = await first.newModel();
    await first.run("/forward_backward", passBody(model, 1, ["abc"]));
    await first.run("/optim_step", stepBody(model, 2, 0.01));
    const { path } = await first.run("/save_weights", { model_id: model, path: "w" });
    const sampler = await first.run("/save_weights_for_sampler", { model_id: model, path: "s" });
    const body = {
      model_path: sampler.path,
      prompt: { chunks: [{ tokens: bytesOf("ab") }] },
      sampling_params: { max_tokens: 9, seed: 2 },
    };
    const sampled = await first.run("/asample", body);
    const next = await first.run("/forward_backward", passBody(model, 3, ["abcd"]));
    await first.server.close();
    const second = await startTestServer({ serverFolder: first.folder });
    expect((await second.call("GET", "/checkpoints")).body.checkpoints.length).toBe(2);
    expect(await second.run("/asample", body)).toEqual(sampled);
    const session_id = await second.newSession();
    const loaded = await second.run("/load_weights", { session_id, model_seq_id: 0, path, optimizer: true });
    expect(await second.run("/forward_backward", passBody(loaded.model_id, 1, ["abcd"]))).toEqual(next);
    await second.server.close();
    rmSync(first.folder, { recursive: true });
  });
});
