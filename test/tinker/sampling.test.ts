// Sampling: many prompts, what comes back with them, and slowing down when the server says so.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type SampleRequest, TinkerClient, type TinkerClientOptions, topkRow } from "../../src/tinker/index.ts";
import { FakeServer, faultSchedule, faultsOn } from "./fake-server.ts";

let server: FakeServer;
let client: TinkerClient;
const QUICK = { firstDelayMs: 1, maxDelayMs: 5, deadlineMs: 60_000 };
const connect = (options: Partial<TinkerClientOptions> = {}) =>
  new TinkerClient({ baseUrl: server.url, retry: QUICK, timeoutMs: 5000, sampling: { pauseMs: 30 }, ...options });
beforeEach(async () => {
  server = await new FakeServer().start();
  server.script = (prompt, i) => ({ tokens: [prompt.at(-1)! + i, 9] });
  client = connect();
});
afterEach(async () => {
  await client.close();
  await server.stop();
});
const params = { maxTokens: 4, stop: [9] };
const requestOf = (...prompt: number[]): SampleRequest => ({ prompt: Int32Array.from(prompt), params });
const newSampler = async () => (await client.createSession()).createSampler({ baseModel: "toy" });
const samples = () => server.requests.filter((r) => r.path === "/asample");

test("many prompts: in order, each with its number, no more at a time than the server allows", async () => {
  server.config = { sample_max_concurrent_requests: 3 };
  server.slowPolls = 1;
  const sampler = await newSampler();
  const results = await sampler.sampleAll(Array.from({ length: 12 }, (_, i) => ({ ...requestOf(1, i), count: 2 })));
  expect(results.map((r) => r.sequences.map((s) => s.tokens[0]))).toEqual(
    Array.from({ length: 12 }, (_, i) => [i, i + 1]),
  );
  expect(new Set(samples().map((r) => r.body.seq_id)).size).toBe(12);
  expect(server.mostOpenSamples).toBe(3);
  await sampler.sample(requestOf(1));
  expect(samples().at(-1)!.body.seq_id).toBe(12);
});

test("many prompts: the first failure ends it", async () => {
  server.config = { sample_max_concurrent_requests: 2 };
  const sampler = await newSampler();
  server.fault = (r) =>
    r.body.seq_id === 1 ? { type: "answer", status: 400, body: { detail: "The prompt is too long." } } : undefined;
  const all = sampler.sampleAll(Array.from({ length: 50 }, () => requestOf(1)));
  await expect(all).rejects.toMatchObject({ kind: "rejected", reason: "The prompt is too long." });
  expect(samples().length).toBeLessThan(10);
});

test("prompt log-probabilities, the top ones, and a text's own", async () => {
  for (const takesProtobuf of [true, false]) {
    server.takesProtobuf = takesProtobuf;
    for (const skyrl of ["jax", undefined] as const) {
      server.skyrl = skyrl;
      const sampler = await newSampler();
      const future = await sampler.sample({ ...requestOf(5, 6, 7), promptLogprobs: true, topkPromptLogprobs: 1 });
      const { promptLogprobs, topkPromptLogprobs } = await future.result();
      expect([...promptLogprobs!]).toEqual([Number.NaN, -1, -1]);
      expect(topkRow(topkPromptLogprobs!, 0)).toBeUndefined();
      expect(topkRow(topkPromptLogprobs!, 2)).toEqual({ tokens: Int32Array.of(7), logprobs: Float32Array.of(-1) });
      expect([...(await sampler.logprobs(Int32Array.of(1, 2)))]).toEqual([Number.NaN, -1]);
    }
  }
});

test("stop strings, seeds and the rest reach the server as asked", async () => {
  const sampler = await newSampler();
  const all = { maxTokens: 3, temperature: 0.5, topK: 4, topP: 0.9, seed: 11, stop: ["\n\n"] };
  await sampler.sample({ prompt: Int32Array.of(1), params: all, topkSampleLogprobs: 2 });
  expect(samples()[0]!.body).toMatchObject({
    sampling_params: { max_tokens: 3, temperature: 0.5, top_k: 4, top_p: 0.9, seed: 11, stop: ["\n\n"] },
    topk_sample_logprobs: 2,
    num_samples: 1,
  });
});

describe("429", () => {
  const busy = (headers: Record<string, string> = {}) => ({ type: "answer", status: 429, headers, body: {} }) as const;
  test("pauses all samples of the client and sends the same number again", async () => {
    const sampler = await newSampler();
    const startedAt = performance.now();
    server.fault = faultsOn("/asample", busy());
    await sampler.sampleAll([requestOf(1), requestOf(2), requestOf(3)]);
    expect(performance.now() - startedAt).toBeGreaterThan(25);
    const seqs = samples().map((r) => r.body.seq_id as number);
    // Over connections of their own they come in any order: one of them came twice.
    expect([seqs.length, [...new Set(seqs)].sort()]).toEqual([4, [0, 1, 2]]);
    expect(samples().every((r) => r.headers["x-tinker-sampling-backpressure"] === "1")).toBe(true);
  });
  test("obeys Retry-After, and afterwards submits few at a time", async () => {
    const sampler = await newSampler();
    let open = 0;
    let most = 0;
    const submit = async () => {
      open += 1;
      most = Math.max(most, open);
      await new Promise((r) => setTimeout(r, 5));
      open -= 1;
    };
    server.fault = faultsOn("/asample", busy({ "retry-after": "0.08" }));
    const startedAt = performance.now();
    await sampler.sample(requestOf(1));
    expect(performance.now() - startedAt).toBeGreaterThan(75);
    await Promise.all(Array.from({ length: 40 }, () => client.gate.run(10, undefined, submit)));
    expect(most).toBe(10);
  });
  test("ends at the deadline, and at an abort", async () => {
    server.fault = (r) => (r.path === "/asample" ? busy() : undefined);
    await client.close();
    client = connect({ sampling: { pauseMs: 5, deadlineMs: 40 } });
    const sampler = await newSampler();
    await expect(sampler.sample(requestOf(1))).rejects.toMatchObject({ kind: "busy", status: 429 });
    await client.close();
    client = connect({ sampling: { pauseMs: 60_000 } });
    const signal = AbortSignal.timeout(50);
    await expect((await newSampler()).sample(requestOf(1), { signal })).rejects.toThrow("aborted");
  });
});

test("a server that wants no retries of samples is not given any", async () => {
  server.config = { sample_no_retries: true };
  const sampler = await newSampler();
  server.fault = faultsOn("/asample", { type: "answer", status: 500 });
  await expect(sampler.sample(requestOf(1))).rejects.toMatchObject({ kind: "failed", status: 500 });
  expect(samples()).toHaveLength(1);
});

test("samples survive whatever comes, on schedule", async () => {
  await client.close();
  client = connect({ timeoutMs: 500 });
  const sampler = await newSampler();
  server.fault = faultSchedule([
    { path: "/asample", at: 1, fault: { type: "answer", status: 500, body: "Internal Server Error" } },
    { path: "/asample", at: 2, fault: { type: "hang" } },
    { path: "/asample", at: 3, fault: { type: "drop", when: "half-way" } },
    { path: "/retrieve_future", at: 1, fault: { type: "expire", what: "future" } },
    { path: "/retrieve_future", at: 2, fault: { type: "drop", when: "half-way" } },
  ]);
  const { sequences } = await (await sampler.sample(requestOf(3))).result();
  expect(sequences[0]!.tokens).toEqual(Int32Array.of(3, 9));
  expect(new Set(samples().map((r) => r.body.seq_id))).toEqual(new Set([0]));
});

test("a sample that failed with its batch is tried alone, once, under another number", async () => {
  const sampler = await newSampler();
  const failed = { type: "answer", status: 400, body: { detail: "index 900 is out of bounds" } } as const;
  server.fault = faultsOn("/retrieve_future", failed);
  await (await sampler.sample(requestOf(1))).result();
  expect(samples().map((r) => r.body.seq_id)).toEqual([0, 1]);
  server.fault = faultsOn("/retrieve_future", failed, failed);
  await expect((await sampler.sample(requestOf(1))).result()).rejects.toMatchObject({ kind: "failed" });
  expect(samples()).toHaveLength(4);
});
