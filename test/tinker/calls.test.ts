/** Calls that few servers have, against the embedded one, which has them; and what waits for an account to be in credit. */
import { rmSync } from "node:fs";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type Datum, type Session, TinkerClient, type TrainingModel } from "../../src/tinker/index.ts";
import { bytesOf, startTestServer, type TestServer, TOKEN } from "../servers/embedded/server.ts";
import { FakeServer, faultsOn } from "./fake-server.ts";

const CE = { name: "cross_entropy" };
const params = { maxTokens: 4, temperature: 1, stop: [] };
const prompt = Int32Array.from(bytesOf("hello"));

function datum(text: string): Datum {
  const tokens = Int32Array.from(bytesOf(text));
  const weights = new Float32Array(tokens.length - 1).fill(1);
  return { input: tokens.slice(0, -1), lossInputs: { target_tokens: tokens.slice(1), weights } };
}

describe("a server that has them", () => {
  let server: TestServer;
  let client: TinkerClient;
  let session: Session;
  let model: TrainingModel;
  beforeAll(async () => {
    server = await startTestServer();
    client = new TinkerClient({ baseUrl: server.server.url, apiKey: TOKEN });
    session = await client.createSession();
    model = await session.createModel({ baseModel: "builtin:tiny", loraRank: 2 });
  });
  afterAll(async () => {
    await client.close();
    await server.server.close();
    rmSync(server.folder, { recursive: true, force: true });
    expect(server.faults).toEqual([]);
  });

  test("clients that join a sampler have numbers of their own", async () => {
    const sampler = await (await model.sampler()).result();
    const [first, second] = [await sampler.join(), await sampler.join()];
    const request = { prompt, params: { ...params, seed: 5 } };
    const results = await Promise.all(
      [sampler, first, second].map(async (one) => (await one.sample(request)).result()),
    );
    // The same seed, and other numbers: three requests with one answer, none taken for a repeat of another.
    const ids = results.map(({ sequences }) => sequences[0]!.sequenceId);
    expect(new Set(ids).size).toBe(3);
    expect(results[1]!.sequences[0]!.tokens).toEqual(results[0]!.sequences[0]!.tokens);
  });

  test("says which samples of a sampler are done, once they are acknowledged no more", async () => {
    const sampler = await (await model.sampler()).result();
    expect(await sampler.completions(0, { timeoutMs: 0 })).toEqual({ done: [], cursor: 0 });
    const futures = [await sampler.sample({ prompt, params }), await sampler.sample({ prompt, params })];
    const seen: string[] = [];
    for (let cursor = 0; seen.length < 2; ) {
      const { done, cursor: next } = await sampler.completions(cursor);
      expect(done.every(({ ok }) => ok)).toBe(true);
      seen.push(...done.map(({ requestId }) => requestId));
      cursor = next;
    }
    expect(seen.sort()).toEqual(futures.map(({ requestId }) => requestId).sort());
    expect(await sampler.completions(2, { timeoutMs: 0 })).toEqual({ done: [], cursor: 2 });
  });

  test("a sample that is not wanted any more is cancelled", async () => {
    const sampler = await (await model.sampler()).result();
    const future = await sampler.sample({ prompt, params: { ...params, maxTokens: 400 }, count: 64 });
    expect(await future.cancel()).toBe(true);
    await expect(future.result()).rejects.toMatchObject({ kind: "failed" });
  });

  test("weights are saved for elsewhere, and copied", async () => {
    const saved = await (await model.saveWeightsExternal("out", { ttlSeconds: 3600 })).result();
    const found = await client.rest.externalWeightsUrls(saved.path);
    if (!found.supported) throw new Error(found.reason);
    const sizes = await Promise.all(
      Object.values(found.value.urls).map(async (url) => (await (await fetch(url)).arrayBuffer()).byteLength),
    );
    expect(sizes.reduce((a, b) => a + b, 0)).toBe(saved.sizeBytes);
    const path = await (await model.saveWeights("state")).result();
    const copied = await client.rest.copyWeights(path, { projectId: "archive" });
    if (!copied.supported) throw new Error(copied.reason);
    expect(copied.value).toMatch(/^tinker:\/\/.+\/weights\/state$/);
    const copy = await session.createModelFrom(copied.value, { optimizer: true });
    await copy.unload();
  });

  test("several targets a position go over the wire in both encodings", async () => {
    const [one, other] = [datum("hello"), datum("jelly")];
    const zip = <A extends Int32Array | Float32Array>(a: A, b: A, make: (n: number) => A): A => {
      const out = make(a.length * 2);
      a.forEach((value, i) => {
        out[2 * i] = value;
        out[2 * i + 1] = b[i]!;
      });
      return out;
    };
    const targets = [one, other].map(({ lossInputs }) => lossInputs.target_tokens as Int32Array);
    const weights = [one, other].map(({ lossInputs }) => lossInputs.weights as Float32Array);
    const wide: Datum = {
      input: one.input,
      lossInputs: {
        target_tokens: zip(targets[0]!, targets[1]!, (n) => new Int32Array(n)),
        weights: zip(weights[0]!, weights[1]!, (n) => new Float32Array(n)),
      },
    };
    const narrow: Datum = { input: one.input, lossInputs: other.lossInputs };
    const json = new TinkerClient({ baseUrl: server.server.url, apiKey: TOKEN, encoding: "json" });
    const same = json.resumeSession(session.id).resumeModel(model.id, 0);
    for (const each of [model, same]) {
      const seqIds = each === same ? { seqIds: [0] } : {};
      const { outputs } = await (await each.forward([wide, narrow], CE, seqIds)).result();
      expect(outputs[0]!.logprobs).toHaveLength(8);
      outputs[1]!.logprobs!.forEach((value, i) => {
        expect(Math.abs(outputs[0]!.logprobs![2 * i + 1]! - value)).toBeLessThan(1e-5);
      });
    }
    await json.close();
    const ragged = { ...wide, lossInputs: { ...wide.lossInputs, target_tokens: new Int32Array(7) } };
    await expect(model.forward([ragged], CE)).rejects.toThrow("7 entries for 4 tokens");
  });

  test("images reach the server in their places, and one that has no eyes says so", async () => {
    const images = [{ at: 2, data: Uint8Array.of(137, 80), format: "png" as const, expectedTokens: 3 }];
    const tokens = prompt.slice(0, -1);
    const seen: Datum = {
      input: tokens,
      images,
      lossInputs: { target_tokens: new Int32Array(7), weights: new Float32Array(7).fill(1) },
    };
    const refusal = { kind: "rejected", status: 422, reason: expect.stringMatching(/model_input.*1.*encoded_text/) };
    await expect(model.forward([seen], CE)).rejects.toMatchObject(refusal);
    const sampler = await (await model.sampler()).result();
    await expect(sampler.sample({ prompt, images, params })).rejects.toMatchObject({ kind: "rejected", status: 422 });
    const lost = { ...seen, images: [{ ...images[0]!, at: 9 }] };
    await expect(model.forward([lost], CE)).rejects.toThrow("an image stands at 9 of 4 tokens");
  });

  test("a loss of one's own must give a derivative for each log-probability", async () => {
    const wrong = model.forwardBackwardCustom([datum("abc")], () => ({ loss: 0, derivatives: [new Float32Array(1)] }));
    await expect(wrong).rejects.toThrow("1 derivatives for 2 log-probabilities");
  });
});

describe("402", () => {
  let server: FakeServer;
  let client: TinkerClient;
  const unpaid = { type: "answer", status: 402, body: { detail: "out of credit" } } as const;
  beforeEach(async () => {
    server = await new FakeServer().start();
    client = new TinkerClient({ baseUrl: server.url, billing: { pauseMs: 20, mostMs: 10_000 } });
  });
  afterEach(async () => {
    await client.close();
    await server.stop();
  });

  test("is waited out by submissions and by polls", async () => {
    const model = await (await client.createSession()).createModel({ baseModel: "toy", loraRank: 4 });
    server.fault = faultsOn("/optim_step", unpaid, unpaid);
    const step = await model.optimStep({ learning_rate: 0 });
    expect(server.count("/optim_step")).toBe(3);
    server.fault = faultsOn("/retrieve_future", unpaid, unpaid);
    await step.result();
  });

  test("ends a call after as long as the server says", async () => {
    server.config = { billing_exception_max_pause_duration_sec: 1 };
    await client.config();
    const model = await (await client.createSession()).createModel({ baseModel: "toy", loraRank: 4 });
    server.fault = ({ path }) => (path === "/optim_step" ? unpaid : undefined);
    const failure = { kind: "rejected", status: 402, reason: "out of credit" };
    await expect(model.optimStep({ learning_rate: 0 })).rejects.toMatchObject(failure);
    expect(server.count("/optim_step")).toBeGreaterThan(5);
  });
});
