// Large passes: cut under limits, sent in order as one call, and put together as the one result.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DEFAULT_LIMITS, datumBytes, mergePasses, splitData } from "../../src/tinker/chunks.ts";
import { type Datum, TinkerClient } from "../../src/tinker/index.ts";
import { FakeServer, faultsOn } from "./fake-server.ts";

const datum = (length: number, first = 0): Datum => ({
  input: Int32Array.from({ length }, (_, i) => first + i),
  lossInputs: {
    target_tokens: Int32Array.from({ length }, (_, i) => first + i + 1),
    weights: new Float32Array(length).fill(1),
  },
});
const CE = { name: "cross_entropy" };

describe("cutting", () => {
  test("counts datums and bytes: 4 a token, 8 a target, 4 a weight", () => {
    expect(datumBytes(datum(10))).toBe(160);
    const data = Array.from({ length: 7 }, () => datum(10));
    const sizes = (datums: number, bytes: number) => splitData(data, { datums, bytes }).map((part) => part.length);
    expect(sizes(3, 1e9)).toEqual([3, 3, 1]);
    expect(sizes(100, 320)).toEqual([2, 2, 2, 1]);
    expect(sizes(100, 1)).toEqual([1, 1, 1, 1, 1, 1, 1]);
    expect(splitData(data).length).toBe(1);
    expect(splitData([], DEFAULT_LIMITS)).toEqual([]);
    expect(splitData(data, { datums: 3, bytes: 1e9 }).flat()).toEqual(data);
  });
});

describe("putting together", () => {
  const part = (outputs: number, metrics: Record<string, number>) => ({
    outputs: Array.from({ length: outputs }, (_, i) => ({ logprobs: Float32Array.of(i) })),
    metrics,
  });
  test.each([
    ["loss:sum", [1, 2], { "loss:sum": 3 }],
    ["x:mean", [1, 5], { "x:mean": 2 }],
    ["x:min", [3, 2], { "x:min": 2 }],
    ["x:max", [3, 2], { "x:max": 3 }],
    ["x:slack", [1, 5], { "x:slack": 3 }],
    ["x:unique", [4, 9], { "x:unique": 4, "x:unique_1": 9 }],
    ["x:hash2", [5, 6], { "x:hash2": 11 }],
    ["lr:last", [0.1, 0.2], { "lr:last": 0.2 }],
    ["x:other", [1, 2], {}],
    ["no colon", [1, 2], {}],
    ["a:b:sum", [1, 2], {}],
  ])("%s", (name, [a, b], merged) => {
    expect(mergePasses([part(3, { [name]: a! }), part(1, { [name]: b! })]).metrics).toEqual(merged);
  });
  test("what not every part has is dropped; a single part stays as it is", () => {
    expect(mergePasses([part(1, { "a:sum": 1 }), part(1, {})]).metrics).toEqual({});
    expect(mergePasses([part(1, { plain: 1 })]).metrics).toEqual({ plain: 1 });
  });
});

describe("one call over several requests", () => {
  let server: FakeServer;
  let client: TinkerClient;
  beforeEach(async () => {
    server = await new FakeServer().start();
    server.config = { fwdbwd_max_chunk_len: 2 };
    client = new TinkerClient({ baseUrl: server.url, retry: { firstDelayMs: 1, deadlineMs: 60_000 }, timeoutMs: 5000 });
  });
  afterEach(async () => {
    await client.close();
    await server.stop();
  });
  const modelOf = async (seed: number) =>
    (await client.createSession()).createModel({ baseModel: "toy", loraRank: 0, seed });
  const data = Array.from({ length: 5 }, (_, i) => datum(2 + i, i));

  test("trains as one request would, in order, with merged outputs and metrics", async () => {
    const whole = await modelOf(0);
    const cut = await modelOf(1);
    expect(await cut.requestsFor(data)).toBe(3);
    const result = await (await cut.forwardBackward(data, CE)).result();
    await (await cut.optimStep({ learning_rate: 0.1 })).result();
    expect(cut.nextSeqId).toBe(5);
    const sent = server.requests.filter((r) => r.path === "/forward_backward");
    expect(sent.map((r) => [r.body.seq_id, r.body.forward_backward_input.data.length])).toEqual([
      [1, 2],
      [2, 2],
      [3, 1],
    ]);
    expect(result.outputs.map((o) => o.logprobs!.length)).toEqual([2, 3, 4, 5, 6]);
    expect(result.metrics).toEqual({ "num_tokens:sum": 20 });
    server.config = {};
    const one = new TinkerClient({ baseUrl: server.url });
    const same = one.resumeSession("session-1").resumeModel(whole.id, 1);
    await (await same.forwardBackward(data, CE)).result();
    await (await same.optimStep({ learning_rate: 0.1 })).result();
    expect(server.models.get(cut.id)!.bytes()).toBe(server.models.get(whole.id)!.bytes());
    await one.close();
  });

  test("a repeat by another process is the same requests", async () => {
    const model = await modelOf(0);
    const first = await model.forwardBackward(data, CE, { seqIds: [1, 2, 3] });
    server.fault = faultsOn("/forward_backward", { type: "drop", when: "after" });
    const other = new TinkerClient({ baseUrl: server.url });
    const again = other.resumeSession("session-1").resumeModel(model.id, 1);
    const second = await again.forwardBackward(data, CE, { seqIds: [1, 2, 3] });
    expect(second.requestId).toBe(first.requestId);
    expect(again.nextSeqId).toBe(4);
    await other.close();
  });

  test("what was begun under other limits cannot be gone on with", async () => {
    const model = await modelOf(0);
    const call = model.forwardBackward(data, CE, { seqIds: [1] });
    await expect(call).rejects.toMatchObject({ kind: "gone", reason: expect.stringContaining("limits") });
    expect(server.count("/forward_backward")).toBe(0);
  });
});
