// The client against a server that misbehaves on purpose: which answers are final, what is sent again, what errors say.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Datum, TinkerClient, TinkerError } from "../../src/tinker/index.ts";
import { FakeServer, type Fault, faultsOn } from "./fake-server.ts";

let server: FakeServer;
let client: TinkerClient;
const QUICK = { firstDelayMs: 1, maxDelayMs: 5, deadlineMs: 60_000 };
/** Longer than a busy machine stands still: an answer that is there must not count as missing. */
const timeoutMs = 2000;

beforeEach(async () => {
  server = await new FakeServer().start();
  client = new TinkerClient({ baseUrl: `${server.url}/`, apiKey: "tml-secret", retry: QUICK, timeoutMs });
});
afterEach(async () => {
  await client.close();
  await server.stop();
});

const datum = (...tokens: number[]): Datum => ({
  input: Int32Array.from(tokens.slice(0, -1)),
  lossInputs: {
    target_tokens: Int32Array.from(tokens.slice(1)),
    weights: new Float32Array(tokens.length - 1).fill(1),
  },
});
const CE = { name: "cross_entropy" };
const newModel = async () => (await client.createSession()).createModel({ baseModel: "toy", loraRank: 0 });
const failure = async (work: Promise<unknown>): Promise<TinkerError> => {
  const error = await work.then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(TinkerError);
  return error as TinkerError;
};

test("trains, saves, loads, samples and lists", async () => {
  const session = await client.createSession({ tags: ["t"] });
  const model = await session.createModel({ baseModel: "toy", loraRank: 0, seed: 3 });
  const data = [datum(1, 2, 3, 2), datum(5, 6)];
  const before = await (await model.forward(data, CE)).result();
  const pass = await model.forwardBackward(data, CE);
  const step = await model.optimStep({ learning_rate: 0.1 });
  expect((await pass.result()).outputs.map((o) => o.logprobs!.length)).toEqual([3, 1]);
  expect((await step.result())["skyrl.ai/grad_norm"]).toBeGreaterThan(0);
  const after = await (await model.forward(data, CE)).result();
  expect(after.outputs[0]!.logprobs![0]).toBeGreaterThan(before.outputs[0]!.logprobs![0]!);
  const path = await (await model.saveWeights("s-1")).result();
  await (await model.saveWeightsForSampler("s-1")).result();
  const listed = await client.listCheckpoints(model.id);
  expect(listed.map((c) => [c.type, c.tinkerPath, c.time])).toEqual([
    ["training", path, "2026-11-30T19:34:12.778249Z"],
    ["sampler", path.replace("/weights/", "/sampler_weights/"), "2026-11-30T19:34:12.778249Z"],
  ]);
  const other = await session.createModel({ baseModel: "toy", loraRank: 0 });
  await (await other.loadWeights(path, { optimizer: true })).result();
  expect(server.models.get(other.id)!.bytes()).toBe(server.models.get(model.id)!.bytes());
  const sampler = await session.createSampler({ modelPath: path });
  const sample = await sampler.sample({
    prompt: Int32Array.of(1, 2, 3),
    params: { maxTokens: 2, stop: [7] },
    count: 2,
    promptLogprobs: true,
  });
  expect(await sample.result()).toEqual({
    sequences: [0, 1].map((i) => ({
      tokens: Int32Array.of(i, 7),
      logprobs: Float32Array.of(-0.5, -0.25),
      stopReason: "stop",
      sequenceId: `seq-0-${i}`,
    })),
    promptLogprobs: Float32Array.of(Number.NaN, -1, -1),
  });
  expect(await client.deleteCheckpoint(path)).toBe(true);
  expect(await client.deleteCheckpoint(path)).toBe(false);
  await other.unload();
  expect(server.requests.every((r) => r.headers["x-api-key"] === "tml-secret")).toBe(true);
  const seqs = server.requests.filter((r) => r.body.model_id === model.id).map((r) => r.body.seq_id as number);
  expect(seqs).toEqual([1, 2, 3, 4, 5, 6]);
});

describe("submitting", () => {
  const faults: [string, Fault][] = [
    ["429", { type: "answer", status: 429, headers: { "retry-after": "0.01" } }],
    ["500 in plain text", { type: "answer", status: 500, body: "Internal Server Error" }],
    ["503", { type: "answer", status: 503, body: {} }],
    ["408", { type: "answer", status: 408, body: {} }],
    ["a proxy's empty 400", { type: "answer", status: 400, body: "" }],
    ["a dropped connection", { type: "drop", when: "before" }],
    ["a connection dropped after the work was done", { type: "drop", when: "after" }],
    ["a hanging server", { type: "hang" }],
  ];
  test.each(faults)("%s is tried again with the same bytes, and the step happens once", async (_, fault) => {
    const model = await newModel();
    server.fault = faultsOn("/optim_step", fault);
    await (await model.optimStep({ learning_rate: 0.1 })).result();
    const sent = server.requests.filter((r) => r.path === "/optim_step");
    expect(sent).toHaveLength(2);
    expect(sent[1]!.text).toBe(sent[0]!.text);
    expect(sent[1]!.headers["x-idempotency-key"]).toBe(sent[0]!.headers["x-idempotency-key"]);
    expect(server.models.get(model.id)!.steps).toBe(1);
  });

  test.each([
    [400, { detail: "bad" }, "rejected"],
    [404, { detail: "Not Found" }, "rejected"],
    [404, { detail: "Model not found" }, "gone"],
    [405, { detail: "Method Not Allowed" }, "rejected"],
    [409, { detail: "Training request sequence number was reused" }, "rejected"],
    [410, { detail: "expired" }, "gone"],
    [422, { detail: [{ loc: ["body", "x"], msg: "Field required", input: { huge: 1 } }] }, "rejected"],
    [425, { detail: "still being written" }, "rejected"],
  ])("%i %j is final: %s", async (status, body, kind) => {
    const model = await newModel();
    server.fault = faultsOn("/optim_step", { type: "answer", status, body });
    const error = await failure(model.optimStep({ learning_rate: 0.1 }));
    expect(error).toMatchObject({ kind, status, endpoint: "POST /api/v1/optim_step" });
    expect(error.message).not.toMatch(/secret|huge/);
    expect(server.count("/optim_step")).toBe(1);
  });

  test("an error names the endpoint without its query", async () => {
    server.fault = faultsOn("/sessions", { type: "answer", status: 400, body: { detail: "bad" } });
    const error = await failure(client.rest.sessions());
    expect(error.endpoint).toBe("GET /api/v1/sessions");
    expect(error.message).not.toContain("limit");
  });

  test.each([
    ["busy", { type: "answer", status: 429, body: { detail: "slow down" } }],
    ["failed", { type: "answer", status: 500, body: "Internal Server Error" }],
    ["network", { type: "drop", when: "before" }],
  ] as [string, Fault][])("the deadline ends retries: %s", async (kind, fault) => {
    const options = { ...QUICK, deadlineMs: 3000 };
    client = new TinkerClient({ baseUrl: server.url, retry: options, timeoutMs });
    const model = await newModel();
    server.fault = (r) => (r.path === "/optim_step" ? fault : undefined);
    expect(await failure(model.optimStep({ learning_rate: 0.1 }))).toMatchObject({ kind });
    expect(server.count("/optim_step")).toBeGreaterThan(3);
  });

  test("a server's x-should-retry overrides the status", async () => {
    const model = await newModel();
    server.fault = faultsOn("/optim_step", { type: "answer", status: 500, headers: { "x-should-retry": "false" } });
    await failure(model.optimStep({ learning_rate: 0.1 }));
    expect(server.count("/optim_step")).toBe(1);
  });

  test("what no server should see is not sent", async () => {
    const model = await newModel();
    const good = datum(1, 2, 3);
    const bad = { ...good, lossInputs: { ...good.lossInputs, weights: Float32Array.of(1) } };
    await expect(model.forward([], CE)).rejects.toThrow(RangeError);
    await expect(model.forward([bad], CE)).rejects.toThrow("weights has 1 entries for 2 targets");
    const nan = { ...good, lossInputs: { ...good.lossInputs, weights: Float32Array.of(1, Number.NaN) } };
    await expect(model.forward([nan], CE)).rejects.toThrow("not finite");
    expect(server.count("/forward")).toBe(0);
  });

  test("the same number with the same bytes is the same request in any process", async () => {
    const model = await newModel();
    const first = await model.forwardBackward([datum(1, 2)], CE, { seqIds: [1] });
    const again = (await client.createSession()).resumeModel(model.id, 1);
    const second = await again.forwardBackward([datum(1, 2)], CE, { seqIds: [1] });
    expect(second.requestId).toBe(first.requestId);
    expect(again.nextSeqId).toBe(2);
  });

  test("an abort ends it at once", async () => {
    const model = await newModel();
    server.fault = (r) => (r.path === "/optim_step" ? { type: "hang" } : undefined);
    const abort = AbortSignal.timeout(30);
    await expect(model.optimStep({ learning_rate: 0.1 }, { signal: abort })).rejects.toThrow("aborted");
  });
});

describe("waiting for a result", () => {
  test("not yet, 408, 5xx and lost polls are polled again", async () => {
    server.slowPolls = 1;
    const model = await newModel();
    const step = await model.optimStep({ learning_rate: 0.1 });
    server.fault = faultsOn(
      "/retrieve_future",
      { type: "answer", status: 408, body: { detail: "not yet" } },
      { type: "answer", status: 502, body: "bad gateway" },
      { type: "drop", when: "before" },
      { type: "answer", status: 429, body: {} },
    );
    const waited: (string | undefined)[] = [];
    await step.result({ onWaiting: (_, state) => waited.push(state) });
    expect(waited).toEqual([undefined, "active"]);
    expect(server.count("/optim_step")).toBe(1);
  });

  test.each([
    ["200 with an error", 200, { error: "it broke", category: "server" }, "failed"],
    ["SkyRL's 400", 400, { detail: "Loss functions ['gspo'] are not supported" }, "failed"],
    ["an expired model", 400, { detail: "Model model_1 not loaded" }, "gone"],
    ["403", 403, { detail: "no" }, "rejected"],
  ])("%s is final", async (_, status, body, kind) => {
    const model = await newModel();
    const step = await model.optimStep({ learning_rate: 0.1 });
    server.fault = faultsOn("/retrieve_future", { type: "answer", status, body });
    expect(await failure(step.result())).toMatchObject({ kind, requestId: step.requestId });
  });

  test("a forgotten future is submitted again with the same bytes", async () => {
    const model = await newModel();
    const step = await model.optimStep({ learning_rate: 0.1 });
    server.fault = faultsOn("/retrieve_future", { type: "answer", status: 410, body: { detail: "expired" } });
    await step.result();
    expect(server.count("/optim_step")).toBe(2);
    expect(server.models.get(model.id)!.steps).toBe(1);
  });

  test("a deadline names what was waited for", async () => {
    server.slowPolls = 1000;
    const session = await client.createSession();
    const error = await failure(session.createModel({ baseModel: "toy", loraRank: 0 }, { deadlineMs: 20 }));
    expect(error).toMatchObject({ kind: "busy", endpoint: "POST /api/v1/create_model" });
  });

  test("a result of the wrong shape is a failure, not data", async () => {
    server.takesProtobuf = false;
    const model = await newModel();
    const pass = await model.forward([datum(1, 2, 3)], CE);
    for (const outputs of [[], [{ logprobs: { data: [1] } }], "x"]) {
      server.futures.set(pass.requestId, { loss_fn_outputs: outputs });
      expect(await failure(pass.result())).toMatchObject({ kind: "failed" });
    }
  });
});

describe("sessions", () => {
  test("beat on their own and tell when they are gone", async () => {
    const gone = new Promise<TinkerError>((onGone) => void client.createSession({ heartbeatMs: 5, onGone }));
    await expect.poll(() => server.count("/session_heartbeat")).toBeGreaterThan(2);
    server.forget();
    expect(await gone).toMatchObject({ kind: "gone", status: 404 });
    // One that was on its way already may still arrive.
    await new Promise((r) => setTimeout(r, 200));
    const beats = server.count("/session_heartbeat");
    await new Promise((r) => setTimeout(r, 50));
    expect(server.count("/session_heartbeat")).toBe(beats);
  });
  test("a server that is not there is a network error", async () => {
    await server.stop();
    client = new TinkerClient({ baseUrl: server.url, retry: { ...QUICK, deadlineMs: 50 } });
    expect(await failure(client.capabilities())).toMatchObject({ kind: "network" });
    await expect(client.health()).rejects.toMatchObject({ kind: "network" });
  });
});
