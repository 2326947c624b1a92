/** Endpoints that the SDKs call beside training and sampling, and models other than plain policies. */
import { rmSync } from "node:fs";
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

async function newModel(more: Record<string, unknown>): Promise<{ session: string; model: string }> {
  const session = await server.newSession();
  const body = { session_id: session, model_seq_id: 0, base_model: "builtin:tiny", ...more };
  return { session, model: (await server.run("/create_model", body)).model_id };
}

describe("a refused call", () => {
  test("keeps no later one waiting, and may still come corrected", async () => {
    const { model } = await newModel({});
    const later = await server.post("/forward_backward", passBody(model, 2, ["abc"]));
    const wrong = passBody(model, 1, ["abc"]);
    (wrong.forward_backward_input as { loss_fn: string }).loss_fn = "nothing";
    expect((await server.call("POST", "/forward_backward", wrong)).status).toBe(422);
    expect((await server.outcome(later)).loss_fn_outputs.length).toBe(1);
    expect((await server.run("/forward_backward", passBody(model, 1, ["abc"]))).loss_fn_outputs.length).toBe(1);
    expect((await server.call("POST", "/forward_backward", passBody(model, 1, ["xyz"]))).status).toBe(409);
    expect((await server.run("/optim_step", stepBody(model, 3))).metrics.grad_norm).toBeGreaterThan(0);
  });
});

describe("a critic", () => {
  const datum = wireDatum(bytesOf("hello"), {
    values: { data: [0, 0, 0, 0], dtype: "float32" },
    returns: { data: [1, 0.5, 0.25, 1], dtype: "float32" },
  });
  const body = (model: string, seq: number, loss_fn = "ppo_critic", more = {}) => ({
    model_id: model,
    seq_id: seq,
    forward_backward_input: { data: [datum], loss_fn, ...more },
  });

  test.each([{ rank: 0 }, { rank: 4 }])(
    "learns values with rank $rank, and is saved and loaded",
    async (lora_config) => {
      const { model, session } = await newModel({ model_role: "critic", lora_config });
      const first = await server.run(
        "/forward_backward",
        body(model, 1, "ppo_critic", { loss_fn_config: { value_clip: 9 } }),
      );
      expect(first.loss_fn_outputs[0].values.data).toEqual([0, 0, 0, 0]);
      expect(first.metrics["critic_loss:sum"]).toBeCloseTo(0.5 * (1 + 0.25 + 0.0625 + 1), 5);
      await server.run("/optim_step", stepBody(model, 2, 0.01));
      for (let seq = 3; seq < 13; seq += 2) {
        await server.run("/forward_backward", body(model, seq, "ppo", { loss_fn_config: { value_clip: 9 } }));
        await server.run("/optim_step", stepBody(model, seq + 1, 0.003));
      }
      const later = await server.run("/forward_backward", body(model, 13));
      expect(later.metrics["loss:sum"]).toBeLessThan(first.metrics["loss:sum"] * 0.8);
      const { path } = await server.run("/save_weights", { model_id: model, seq_id: 14, path: "critic" });
      const loaded = await server.run("/load_weights", { session_id: session, model_seq_id: 1, path, optimizer: true });
      const again = await server.run("/forward_backward", body(loaded.model_id, 1));
      expect(again.loss_fn_outputs).toEqual(later.loss_fn_outputs);
      const sampler = await server.run("/save_weights_for_sampler", { model_id: model, seq_id: 15, path: "s" });
      expect(sampler).toMatchObject({ category: "user", error: expect.stringContaining("critic") });
      const policy = await newModel({ lora_config });
      const misfit = await server.run("/load_weights", { model_id: policy.model, path });
      expect(misfit).toMatchObject({ category: "user", error: expect.stringContaining("a critic with") });
    },
  );

  test("has the losses of a critic only", async () => {
    const { model } = await newModel({ model_role: "critic" });
    const refused = await server.call("POST", "/forward_backward", body(model, 1, "cross_entropy"));
    expect(refused.status).toBe(422);
    const clipped = body(model, 1, "ppo", { loss_fn_config: { clip_low_threshold: 0.9 } });
    expect((await server.call("POST", "/forward_backward", clipped)).body.detail[0].msg).toContain("value_clip");
  });
});

describe("an adapter", () => {
  const parts = [
    { train_attn: true, train_mlp: false, train_unembed: false },
    { train_attn: false, train_mlp: true, train_unembed: false },
    { train_attn: false, train_mlp: false, train_unembed: true },
    { train_attn: true, train_mlp: true, train_unembed: true },
  ];

  test.each(parts)("of %j starts without effect, trains, samples and says what it is", async (config) => {
    const { model, session } = await newModel({ lora_config: { rank: 3, seed: 1, ...config } });
    const tokens = bytesOf("hello world");
    const prompt = { chunks: [{ type: "encoded_text", tokens }] };
    const scoreOf = async (source: object) =>
      (
        await server.run("/asample", { ...source, prompt, prompt_logprobs: true, sampling_params: { max_tokens: 1 } })
      ).prompt_logprobs.slice(1) as number[];
    const base = await scoreOf({ base_model: "builtin:tiny" });
    const first = await server.run("/forward_backward", passBody(model, 1, ["hello world"]));
    first.loss_fn_outputs[0].logprobs.data.forEach((value: number, i: number) => {
      expect(value).toBeCloseTo(base[i]!, 3);
    });
    await server.run("/optim_step", stepBody(model, 2, 0.002));
    const second = await server.run("/forward_backward", passBody(model, 3, ["hello world"]));
    expect(second.metrics["loss:sum"]).toBeLessThan(first.metrics["loss:sum"]);
    const { path } = await server.run("/save_weights_for_sampler", { model_id: model, seq_id: 4, path: "s" });
    (await scoreOf({ model_path: path })).forEach((value, i) => {
      expect(value).toBeCloseTo(second.loss_fn_outputs[0].logprobs.data[i], 3);
    });
    const saved = await server.run("/save_weights", { model_id: model, seq_id: 5, path: "w" });
    expect(await server.post("/weights_info", { tinker_path: saved.path })).toMatchObject({ lora_rank: 3, ...config });
    const loaded = await server.run("/load_weights", { session_id: session, model_seq_id: 1, path: saved.path });
    const third = await server.run("/forward", {
      model_id: loaded.model_id,
      forward_input: passBody("", 0, ["hello world"]).forward_backward_input,
    });
    third.loss_fn_outputs[0].logprobs.data.forEach((value: number, i: number) => {
      expect(value).toBeCloseTo(second.loss_fn_outputs[0].logprobs.data[i], 4);
    });
  });

  test("several train over one base without seeing each other", async () => {
    const models = await Promise.all([1, 2, 3].map((seed) => newModel({ lora_config: { rank: 2, seed } })));
    const alone = await newModel({ lora_config: { rank: 2, seed: 2 } });
    const train = async ({ model }: { model: string }, text: string) => {
      const losses: number[] = [];
      for (let step = 0; step < 3; step++) {
        const pass = await server.run("/forward_backward", passBody(model, step * 2 + 1, [text]));
        await server.run("/optim_step", stepBody(model, step * 2 + 2, 0.02));
        losses.push(pass.metrics["loss:sum"]);
      }
      return losses;
    };
    const together = await Promise.all(models.map((model, i) => train(model, ["abcdef", "hello!", "xyzxyz"][i]!)));
    expect(await train(alone, "hello!")).toEqual(together[1]);
  });
});

describe("checkpoints over REST", () => {
  test("are published, expire, and are downloaded by a signed link", async () => {
    const { model } = await newModel({ lora_config: { rank: 2 } });
    const { path } = await server.run("/save_weights", { model_id: model, path: "a" });
    const base = `/training_runs/${encodeURIComponent(model)}/checkpoints/weights/a`;
    const described = async () =>
      (await server.call("GET", "/checkpoints?limit=1000")).body.checkpoints.find(
        (c: { tinker_path: string }) => c.tinker_path === path,
      );
    expect((await server.call("POST", `${base}/publish`)).status).toBe(204);
    expect((await server.call("PUT", `${base}/ttl`, { ttl_seconds: 3600 })).status).toBe(204);
    expect(await described()).toMatchObject({ public: true, expires_at: expect.stringMatching(/Z$/) });
    expect((await server.call("DELETE", `${base}/publish`)).status).toBe(204);
    expect((await server.call("PUT", `${base}/ttl`, { ttl_seconds: null })).status).toBe(204);
    expect(await described()).toMatchObject({ public: false, expires_at: null });
    expect((await server.call("PUT", `${base}/ttl`, { ttl_seconds: -1 })).status).toBe(422);
    expect((await server.call("POST", `${base}x/publish`)).status).toBe(404);

    const link = await fetch(`${server.server.url}/api/v1${base}/archive`, {
      headers: { "X-API-Key": TOKEN },
      redirect: "manual",
    });
    expect(link.status).toBe(302);
    const location = link.headers.get("location")!;
    const archive = await fetch(location);
    expect(archive.status).toBe(200);
    const bytes = Buffer.from(await archive.arrayBuffer());
    expect(bytes.toString("latin1", 257, 262)).toBe("ustar");
    expect(bytes.includes("adapter_config.json")).toBe(true);
    const forged = new URL(location);
    forged.pathname = forged.pathname.replace("weights/a/", "weights/b/");
    expect((await fetch(forged)).status).toBe(401);
    const longer = new URL(location);
    longer.searchParams.set("expires", String(Date.now() + 1e9));
    expect((await fetch(longer)).status).toBe(401);
    expect((await fetch(location, { method: "DELETE" })).status).toBe(401);
  });
});

describe("sessions", () => {
  test("are found by name, metadata, project and status, page by page", async () => {
    const make = (display_name: string, who: string) =>
      server.post("/create_session", {
        tags: [],
        user_metadata: { who, mark: "find" },
        display_name,
        sdk_version: "0",
      });
    const ids: string[] = [];
    for (const [name, who] of [
      ["Nightly one", "a"],
      ["nightly TWO", "b"],
      ["other", "b"],
    ] as const)
      ids.push((await make(name, who)).session_id);
    const search = async (body: object) =>
      (await server.post("/sessions/search", { user_metadata: { mark: "find" }, ...body })) as {
        sessions: { session_id: string; status: { type: string } }[];
        next_cursor: object | null;
      };
    const found = async (body: object) => (await search(body)).sessions.map(({ session_id }) => session_id).sort();
    expect(await found({})).toEqual([...ids].sort());
    expect(await found({ display_name: "two nightly" })).toEqual([ids[1]]);
    expect(await found({ display_name: "two nightly", session_id: ids[2] })).toEqual([ids[1], ids[2]].sort());
    expect(await found({ user_metadata: { mark: "find", who: "b" } })).toEqual([ids[1], ids[2]].sort());
    expect((await server.call("PUT", `/sessions/${ids[0]}/project`, { project_id: "p" })).status).toBe(204);
    expect(await found({ project_ids: ["p"] })).toEqual([ids[0]]);
    await server.call("POST", `/sessions/${ids[2]}/finish`, { reason: { type: "errored" }, detail: "x" });
    const finished = await search({ statuses: [{ type: "client_finished" }] });
    expect(finished.sessions).toMatchObject([
      { session_id: ids[2], status: { reason: { type: "errored" }, detail: "x" } },
    ]);
    const pages: string[] = [];
    for (let cursor: object | null = null, rounds = 0; rounds < 3; rounds++) {
      const page = await search({ limit: 1, cursor });
      pages.push(...page.sessions.map(({ session_id }) => session_id));
      cursor = page.next_cursor;
      expect(cursor === null).toBe(rounds === 2);
    }
    expect(pages.sort()).toEqual([...ids].sort());
    const { status, url } = (await server.call("GET", `/sessions/${ids[0]}/trace_export`)).body;
    expect(status).toBe("ready");
    // Whoever follows the link has no key to send.
    expect((await fetch(url)).status).toBe(200);
    expect((await fetch(url.replace("signature=", "signature=0"))).status).toBe(401);
  });
});

describe("futures of a sampling session", () => {
  test("are reported once, in the order they finish, to whoever polls for them", async () => {
    const session_id = await server.newSession();
    const { sampling_session_id } = await server.post("/create_sampling_session", {
      session_id,
      sampling_session_seq_id: 0,
      base_model: "builtin:tiny",
    });
    const target = { type: "sampling_session", sampling_session_id, cloned_sampler_id: 0 };
    const poll = (prev_cursor: number, timeout: number) =>
      server.post("/retrieve_futures", { target, prev_cursor, timeout, retrieved_request_ids: [] });
    expect(await poll(0, 0)).toEqual({ completions: [], cursor: 0 });
    const held = poll(0, 2);
    const prompt = { chunks: [{ type: "encoded_text", tokens: bytesOf("ab") }] };
    const ask = (seq_id: number) =>
      server.post("/asample", { sampling_session_id, seq_id, prompt, sampling_params: { max_tokens: 2 } });
    const first = await ask(0);
    expect(await held).toEqual({ completions: [{ state: "finished", request_id: first.request_id }], cursor: 1 });
    const second = await ask(1);
    await server.outcome(second);
    expect(await poll(1, 0)).toMatchObject({ completions: [{ request_id: second.request_id }], cursor: 2 });
    await server.outcome(await ask(1e9));
    expect(await poll(2, 0)).toEqual({ completions: [], cursor: 2 });
    const numbers = [1, 2].map(() => server.post("/join_sampling_session", { sampling_session_id }));
    expect(new Set((await Promise.all(numbers)).map((n) => n.client_counter)).size).toBe(2);
  });

  test("are given up with their session: nobody can ask for them any more", async () => {
    const session_id = await server.newSession();
    const call = { session_id, sampling_session_seq_id: 0, base_model: "builtin:tiny" };
    const { sampling_session_id } = await server.post("/create_sampling_session", call);
    const prompt = { chunks: [{ type: "encoded_text", tokens: bytesOf("ab") }] };
    const size = { num_samples: 64, sampling_params: { max_tokens: 900, stop: [] } };
    const ask = (seq_id: number) => server.post("/asample", { sampling_session_id, seq_id, prompt, ...size });
    const submitted = await Promise.all([0, 1].map(ask));
    const finish = { reason: { type: "success" }, detail: null };
    expect((await server.call("POST", `/sessions/${session_id}/finish`, finish)).status).toBeLessThan(300);
    for (const { request_id } of submitted)
      expect((await server.call("POST", "/retrieve_future", { request_id })).status).toBe(410);
    const again = await server.call("POST", "/asample", { sampling_session_id, seq_id: 0, prompt, ...size });
    expect(again.status).toBe(404);
  });

  test("that are cancelled fail at once", async () => {
    const prompt = { chunks: [{ type: "encoded_text", tokens: bytesOf("ab") }] };
    const submitted = await server.post("/asample", {
      base_model: "builtin:tiny",
      prompt,
      num_samples: 64,
      sampling_params: { max_tokens: 900, stop: [] },
    });
    expect((await server.call("POST", "/cancel_future", { request_id: submitted.request_id })).status).toBe(204);
    expect(await server.outcome(submitted)).toMatchObject({
      error: expect.stringContaining("cancelled"),
      category: "user",
    });
  });
});

test("samplers whose weights change are refused", async () => {
  const { model } = await newModel({ lora_config: { rank: 1 } });
  const body = { model_id: model, seq_id: 1, sampling_session_seq_id: 0, kind: "inflight" };
  const { status, body: answer } = await server.call("POST", "/save_weights_for_sampler", body);
  expect(status).toBe(400);
  expect(answer.detail).toContain("inflight");
  expect(await server.run("/save_weights_for_sampler", { ...body, kind: "snapshot" })).toMatchObject({ path: null });
});

test("external weights are downloaded file by file, without a key", async () => {
  const { model } = await newModel({ lora_config: { rank: 2 } });
  const saved = await server.run("/save_weights_external", { model_id: model, seq_id: 1, path: "out" });
  expect(saved).toMatchObject({ path: `tinker://${model}/external_weights/out`, type: "save_weights_external" });
  const checkpoint = `/training_runs/${encodeURIComponent(model)}/checkpoints/external_weights/out`;
  const { urls, expires } = (await server.call("GET", `${checkpoint}/external_weights_urls`)).body;
  expect(Object.keys(urls).sort()).toEqual(["adapter_config.json", "adapter_model.safetensors"]);
  expect(Date.parse(expires)).toBeGreaterThan(Date.now());
  const files = await Promise.all(Object.values<string>(urls).map(async (url) => (await fetch(url)).arrayBuffer()));
  expect(files.reduce((sum, bytes) => sum + bytes.byteLength, 0)).toBe(saved.size_bytes);
  const forged = String(urls["adapter_config.json"]).replace("adapter_config.json", "checkpoint.json");
  expect((await fetch(forged)).status).toBe(401);
  const listed = (await server.call("GET", `/training_runs/${encodeURIComponent(model)}/checkpoints`)).body;
  expect(listed.checkpoints).toMatchObject([{ checkpoint_type: "external", size_bytes: saved.size_bytes }]);
  expect((await server.call("DELETE", checkpoint)).status).toBe(204);
});

test("weights are copied into a run of their own, which outlives its source", async () => {
  const { session, model } = await newModel({ lora_config: { rank: 2 } });
  await server.run("/forward_backward", passBody(model, 1, ["abc"]));
  await server.run("/optim_step", stepBody(model, 2));
  const { path } = await server.run("/save_weights", { model_id: model, seq_id: 3, path: "here" });
  const body = { source_path: path, session_id: session, model_seq_id: 7 };
  const { tinker_path: copy } = await server.post("/copy_weights", body);
  expect(copy).toBe(`tinker://${session}:train:7/weights/here`);
  expect((await server.post("/copy_weights", body)).tinker_path).toBe(copy);
  const { tinker_path: elsewhere } = await server.post("/copy_weights", {
    source_path: path,
    destination_project_id: "p",
  });
  expect(elsewhere).not.toBe(copy);
  await server.call("DELETE", `/training_runs/${encodeURIComponent(model)}/checkpoints/weights/here`);
  for (const [seq, from] of [copy, elsewhere].entries()) {
    const load = { session_id: session, model_seq_id: 20 + seq, path: from, optimizer: true };
    const loaded = await server.run("/load_weights", load);
    const other = await server.run("/optim_step", stepBody(loaded.model_id, 1));
    expect(other.metrics.grad_norm).toBe(0);
  }
  expect((await server.call("POST", "/copy_weights", { ...body, source_path: path, model_seq_id: 8 })).status).toBe(
    404,
  );
});

test("of a model's unnamed sampler weights the newest are kept", async () => {
  const { model, session } = await newModel({ lora_config: { rank: 1 } });
  const samplers: string[] = [];
  for (let i = 0; i < 66; i++) {
    const saved = { model_id: model, seq_id: i + 1, sampling_session_seq_id: i };
    samplers.push((await server.run("/save_weights_for_sampler", saved)).sampling_session_id);
  }
  const sample = (sampler: string) =>
    server.call("POST", "/asample", {
      sampling_session_id: sampler,
      seq_id: 0,
      prompt: { chunks: [{ tokens: [65] }] },
    });
  expect((await sample(samplers[1]!)).status).toBe(410);
  expect((await sample(samplers[2]!)).status).toBe(200);
  expect((await sample(samplers[65]!)).status).toBe(200);
  await server.call("POST", `/sessions/${session}/finish`, {});
});

test("several targets a position are scored and trained, in both encodings of the result's shape", async () => {
  const { model } = await newModel({});
  const [tokens, other] = [bytesOf("hello"), bytesOf("jelly")];
  const wide = wireDatum(tokens, {
    target_tokens: { data: [1, 2, 3, 4].flatMap((i) => [tokens[i]!, other[i]!]), dtype: "int64", shape: [4, 2] },
    weights: { data: [1, 0, 0.5, 0.5, 0, 1, 1, 1], dtype: "float32", shape: [4, 2] },
  });
  const pass = { model_id: model, seq_id: 1, forward_backward_input: { data: [wide], loss_fn: "cross_entropy" } };
  const { loss_fn_outputs } = await server.run("/forward_backward", pass);
  expect(loss_fn_outputs[0].logprobs.shape).toEqual([4, 2]);
  const single = wireDatum(tokens, {
    target_tokens: { data: other.slice(1), dtype: "int64", shape: [4] },
  });
  const alone = { model_id: model, seq_id: 2, forward_input: { data: [single], loss_fn: "cross_entropy" } };
  const { loss_fn_outputs: plain } = await server.run("/forward", alone);
  plain[0].logprobs.data.forEach((value: number, i: number) => {
    expect(Math.abs(loss_fn_outputs[0].logprobs.data[2 * i + 1] - value)).toBeLessThan(1e-5);
  });
});

test("what this server does not have is refused with a sentence", async () => {
  const { status, body } = await server.call("POST", "/create_custom_loss", {});
  expect(status).toBe(400);
  expect(body.detail).toMatch(/does not support/);
  const { model } = await newModel({});
  const encrypted = { model_id: model, seq_id: 1, path: "out", age_encryption_recipients: ["age1"] };
  expect((await server.call("POST", "/save_weights_external", encrypted)).status).toBe(400);
  expect((await server.call("GET", "/audit")).body).toEqual({ entries: [] });
});
