// Everything but training and sampling: models made from checkpoints, samplers of live weights, checkpoints' REST calls,
// and what a server without them is taken to say.
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { sniff } from "../../src/tinker/archive.ts";
import { TinkerClient } from "../../src/tinker/index.ts";
import { FakeServer, type Fault, type SeenRequest } from "./fake-server.ts";

let server: FakeServer;
let client: TinkerClient;
beforeEach(async () => {
  server = await new FakeServer().start();
  client = new TinkerClient({ baseUrl: server.url, apiKey: "tml-key", retry: { firstDelayMs: 1, deadlineMs: 60_000 } });
});
afterEach(async () => {
  await client.close();
  await server.stop();
});
/** Answers one call with a body. */
const answer = (method: string, path: string, status: number, body?: unknown, headers?: Record<string, string>) => {
  const fault: Fault = {
    type: "answer",
    status,
    ...(body === undefined ? {} : { body }),
    ...(headers ? { headers } : {}),
  };
  const others = server.fault;
  server.fault = (r: SeenRequest) => (r.method === method && r.path === path ? fault : others(r));
};
const data = [
  { input: Int32Array.of(1), lossInputs: { target_tokens: Int32Array.of(2), weights: Float32Array.of(1) } },
];

describe("models", () => {
  test("are created with the layers and the role asked for", async () => {
    const session = await client.createSession();
    const layers = { attention: true, mlp: false, unembedding: false };
    await session.createModel({ baseModel: "toy", loraRank: 8, seed: 3, layers, role: "critic" });
    expect(server.requests.at(-2)!.body).toMatchObject({
      lora_config: { rank: 8, seed: 3, train_attn: true, train_mlp: false, train_unembed: false },
      model_role: "critic",
    });
  });

  test.each([undefined, "jax"] as const)("come from a checkpoint, in one call or three (%s)", async (skyrl) => {
    server.skyrl = skyrl;
    const session = await client.createSession();
    const model = await session.createModel({ baseModel: "toy", loraRank: 4 });
    await (await model.forwardBackward(data, { name: "cross_entropy" })).result();
    await (await model.optimStep({ learning_rate: 0.1 })).result();
    const path = await (
      await model.saveWeights("s", { ttlSeconds: 3600, metadata: { a: "b" }, overwrite: true })
    ).result();
    const save = server.requests.find((r) => r.path === "/save_weights")!.body;
    expect(save).toMatchObject({ ttl_seconds: 3600, user_metadata: { a: "b" }, overwrite: true });
    const copy = await session.createModelFrom(path, { optimizer: true });
    expect(copy.id).toBe("session-1:train:1");
    expect(server.models.get(copy.id)!.bytes()).toBe(server.models.get(model.id)!.bytes());
    await (await copy.forwardBackward(data, { name: "cross_entropy" })).result();
    expect(server.count("/weights_info")).toBe(skyrl ? 1 : 0);
    await expect(session.createModelFrom("tinker://x/weights/none", { optimizer: true })).rejects.toMatchObject({
      status: 404,
    });
  });

  test("tell of themselves, and make samplers of their live weights", async () => {
    const session = await client.createSession();
    const model = await session.createModel({ baseModel: "toy", loraRank: 4 });
    expect(await model.info()).toEqual({ modelId: model.id, modelName: "toy", loraRank: 4 });
    const first = await (await model.sampler()).result();
    const second = await (await model.sampler()).result();
    expect(first.id).not.toBe(second.id);
    const sent = server.requests.filter((r) => r.path === "/save_weights_for_sampler").map((r) => r.body);
    expect(sent.map((b) => [b.seq_id, b.sampling_session_seq_id, b.path])).toEqual([
      [1, 0, undefined],
      [2, 1, undefined],
    ]);
    const params = { maxTokens: 1, stop: [] };
    await (await first.sample({ prompt: Int32Array.of(1), params })).result();
  });

  test("a failed pass is tried alone once, where nothing was sent behind it", async () => {
    const model = await (await client.createSession()).createModel({ baseModel: "toy", loraRank: 4 });
    const failed: Fault = { type: "answer", status: 400, body: { detail: "a shape in the batch is wrong" } };
    const failNext = () => {
      let left = 1;
      server.fault = (r) => (r.path === "/retrieve_future" && left-- > 0 ? failed : undefined);
    };
    failNext();
    await (await model.forwardBackward(data, { name: "cross_entropy" })).result();
    expect(model.nextSeqId).toBe(3);
    const pass = await model.forwardBackward(data, { name: "cross_entropy" });
    const step = await model.optimStep({ learning_rate: 0.1 });
    failNext();
    await expect(pass.result()).rejects.toMatchObject({ kind: "failed", status: 400 });
    await step.result();
    failNext();
    const numbered = await model.forward(data, { name: "cross_entropy" }, { seqIds: [5] });
    await expect(numbered.result()).rejects.toMatchObject({ kind: "failed" });
    expect(model.nextSeqId).toBe(6);
  });
});

describe("sessions", () => {
  test("are finished, and that a server has no such call is no failure", async () => {
    const session = await client.createSession();
    answer("POST", `/sessions/${session.id}/finish`, 404, { detail: "Not Found" });
    await session.finish();
    answer("POST", `/sessions/${session.id}/finish`, 204, "");
    await session.finish();
    expect(server.requests.at(-1)!.body).toEqual({ reason: { type: "success" }, detail: null });
  });
  test("are listed and told of", async () => {
    answer("GET", "/sessions", 200, { sessions: ["a", "b"] });
    answer("GET", "/sessions/a", 200, { training_run_ids: ["r"], sampler_ids: [], user_metadata: { x: 1 } });
    expect(await client.rest.sessions()).toEqual({ supported: true, value: ["a", "b"] });
    expect(await client.rest.session("a")).toEqual({
      supported: true,
      value: { runIds: ["r"], samplerIds: [], metadata: { x: 1 } },
    });
    answer("GET", "/samplers/s", 200, { sampler_id: "s", base_model: "toy", model_path: null });
    expect(await client.rest.sampler("s")).toEqual({ id: "s", baseModel: "toy" });
  });
});

describe("checkpoints", () => {
  const path = "tinker://s:train:0/weights/x";
  const url = "/training_runs/s:train:0/checkpoints/weights/x";
  test("have a time to live, and are published and not", async () => {
    answer("PUT", `${url}/ttl`, 204, "");
    answer("POST", `${url}/publish`, 204, "");
    answer("DELETE", `${url}/publish`, 204, "");
    for (const call of [client.rest.setTtl(path, 60), client.rest.publish(path), client.rest.unpublish(path)]) {
      expect(await call).toMatchObject({ supported: true });
    }
    expect(server.requests.map((r) => r.body.ttl_seconds)).toContain(60);
  });
  test.each([
    [404, "Not Found", true],
    [405, "Method Not Allowed", true],
    [404, "Checkpoint not found", false],
    [403, "not yours", false],
  ])("%i %s is a missing call: %s", async (status, detail, isMissing) => {
    answer("PUT", `${url}/ttl`, status, { detail });
    const call = client.rest.setTtl(path, null);
    if (isMissing) expect(await call).toMatchObject({ supported: false, reason: expect.stringContaining(detail) });
    else await expect(call).rejects.toMatchObject({ status });
  });
  test("a run is told of, with times in UTC", async () => {
    const run = { training_run_id: "r", base_model: "toy", is_lora: true, last_request_time: "2026-01-01T00:00:00" };
    answer("GET", "/training_runs/r", 200, run);
    expect(await client.rest.trainingRun("r")).toMatchObject({ runId: "r", lastRequestTime: "2026-01-01T00:00:00Z" });
  });

  const read = async (bytes: AsyncIterable<Uint8Array>) => {
    const parts: Uint8Array[] = [];
    for await (const part of bytes) parts.push(part);
    return Buffer.concat(parts);
  };
  const sampler = "tinker://m/sampler_weights/p";
  const bare = "/training_runs/m/checkpoints/p/archive";
  const typed = "/training_runs/m/checkpoints/sampler_weights/p/archive";

  test("are downloaded by redirect; where the typed call is missing, by SkyRL's", async () => {
    answer("GET", typed, 405, { detail: "Method Not Allowed" });
    answer("GET", bare, 302, "", { location: `${server.url}/api/v1/files/p` });
    answer("GET", "/files/p", 200, "plain bytes");
    const archive = await client.rest.archive(sampler);
    expect(archive).toMatchObject({ supported: true, value: { format: "tar", isMarker: false } });
    if (archive.supported) expect((await read(archive.value.bytes)).toString()).toBe("plain bytes");
    expect(server.requests.at(-1)!.headers["x-api-key"]).toBe("tml-key");
  });
  test("a link to another host is followed without the credential", async () => {
    const other = await new FakeServer().start();
    try {
      other.fault = () => ({ type: "answer", status: 200, body: "x" });
      answer("GET", typed, 200, { url: `${other.url}/signed`, expires: "2026-12-01T00:00:00Z" });
      expect(await client.rest.archive(sampler)).toMatchObject({ supported: true });
      expect(other.requests[0]!.headers["x-api-key"]).toBeUndefined();
    } finally {
      await other.stop();
    }
  });
  test("a training state that cannot be downloaded is not supported", async () => {
    answer("GET", `${url}/archive`, 405, { detail: "Method Not Allowed" });
    expect(await client.rest.archive(path)).toMatchObject({ supported: false });
  });

  const source = async function* (bytes: Uint8Array, size: number) {
    for (let i = 0; i < bytes.length; i += size) yield bytes.subarray(i, i + size);
  };
  const tar = (name: string) => Buffer.concat([Buffer.from(name), Buffer.alloc(1024 - name.length)]);
  test.each([
    ["gzip", gzipSync(tar("a")), "tar.gz", false],
    ["tar", tar("model.safetensors"), "tar", false],
    ["a marker", tar("MARKER"), "tar", true],
    ["nothing", Buffer.alloc(0), "tar", false],
  ])("%s is told by its bytes, and all of them come", async (_, bytes, format, isMarker) => {
    for (const size of [1, 7, 4096]) {
      const archive = await sniff(source(bytes, size));
      expect(archive).toMatchObject({ format, isMarker });
      expect(await read(archive.bytes)).toEqual(bytes);
    }
  });
});
