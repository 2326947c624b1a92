// One suite over real servers: what the client promises holds on each, whatever the server does underneath. SkyRL needs
// the environment of ./setup-skyrl and RLCLI_TEST_SKYRL (or RLCLI_TEST_ALL); where it is not there it is reported as skipped.
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type CustomLoss,
  createCleanModel,
  type Datum,
  type Loss,
  planStep,
  type ServerKind,
  type Session,
  serverFamily,
  serverKind,
  TinkerClient,
  type TrainingModel,
} from "../../src/tinker/index.ts";
import { planGradient, requestCounts, sendGradient } from "../../src/training/gradient.ts";
import { runTraining, type TrainingDeps } from "../../src/training/training.ts";
import { startTestServer, TOKEN } from "../servers/embedded/server.ts";
import { makeOrder } from "../training/order.ts";
import { hasSkyrl, startSkyrl } from "./skyrl.ts";

const modelFolder = fileURLToPath(new URL("../fixtures/tiny-qwen3", import.meta.url)).replace(/\/$/, "");
const references = JSON.parse(readFileSync(`${modelFolder}/reference-logprobs.json`, "utf8")) as {
  tokens: number[];
  next_token_logprobs: number[];
}[];

interface Running {
  readonly url: string;
  stop(): Promise<void>;
}
interface Counterpart {
  readonly kind: ServerKind;
  readonly isThere: boolean;
  readonly start: () => Promise<Running>;
  /** Optional calls that the server has. */
  readonly has: { readonly ttl: boolean; readonly publish: boolean; readonly sessions: boolean };
}

async function startEmbedded(): Promise<Running> {
  const running = await startTestServer({ model: modelFolder, modelFolder, slots: 8, bodyLimitBytes: 64_000_000 });
  const stop = async () => {
    await running.server.close();
    rmSync(running.folder, { recursive: true, force: true });
    expect(running.faults).toEqual([]);
  };
  return { url: running.server.url, stop };
}

const COUNTERPARTS: Counterpart[] = [
  {
    kind: "embedded",
    isThere: true,
    start: startEmbedded,
    has: { ttl: true, publish: true, sessions: true },
  },
  {
    kind: "skyrl-jax",
    isThere: hasSkyrl && (process.env.RLCLI_TEST_ALL ?? process.env.RLCLI_TEST_SKYRL) !== undefined,
    start: () => startSkyrl(modelFolder),
    has: { ttl: false, publish: false, sessions: false },
  },
];

const CE: Loss = { name: "cross_entropy" };
const datum = (tokens: readonly number[], weights: readonly number[] = tokens.slice(1).map(() => 1)): Datum => ({
  input: Int32Array.from(tokens.slice(0, -1)),
  lossInputs: { target_tokens: Int32Array.from(tokens.slice(1)), weights: Float32Array.from(weights) },
});
const scaled = (d: Datum, factor: number): Datum => ({
  ...d,
  lossInputs: { ...d.lossInputs, weights: (d.lossInputs.weights as Float32Array).map((w) => w * factor) },
});

describe.each(COUNTERPARTS)("$kind", ({ kind, isThere, start, has }) => {
  const it = test.skipIf(!isThere);
  let server: Running;
  let client: TinkerClient;
  let session: Session;
  let model: TrainingModel;

  beforeAll(async () => {
    if (!isThere) return;
    server = await start();
    client = new TinkerClient({ baseUrl: server.url, apiKey: TOKEN });
    session = await client.createSession({ tags: ["contract"] });
    model = await session.createModel({ baseModel: modelFolder, loraRank: 4, seed: 7 });
  }, 300_000);
  afterAll(async () => {
    await client?.close();
    await server?.stop();
  }, 300_000);

  /** The gradient norm of data whose plain sum is the loss; the weights stay as they are. */
  async function gradNorm(loss: Loss, data: readonly Datum[]): Promise<number> {
    let plan = planStep(kind, loss, data);
    if (plan.type === "refused") throw new Error(plan.reason);
    if (plan.type === "forward first") {
      const { outputs } = await (await model.forward(data, loss)).result();
      plan = { type: "send", ...plan.from(outputs.map((o) => o.logprobs!)) };
    }
    await (await model.forwardBackward(plan.data, plan.loss)).result();
    const metrics = await (await model.optimStep({ learning_rate: 0 })).result();
    return Object.entries(metrics).find(([name]) => name.includes("grad_norm"))![1];
  }

  it("is told by its answers, and takes protobuf", async () => {
    expect(await serverFamily(client)).toBe(kind === "embedded" ? "embedded" : "skyrl");
    expect(await serverKind(client, model)).toBe(kind);
    const [info] = await client.capabilities();
    expect(info!.modelName).toBe(modelFolder);
    await (await model.forward([datum([1, 2, 3])], CE)).result();
    expect(client.passEncoding).toBe("protobuf");
    expect(await model.info()).toMatchObject({ modelId: model.id, loraRank: 4 });
  }, 300_000);

  it("scores tokens as the reference does, in both encodings", async () => {
    const json = new TinkerClient({ baseUrl: server.url, apiKey: TOKEN, encoding: "json" });
    const other = await (await json.createSession()).createModel({ baseModel: modelFolder, loraRank: 4 });
    for (const m of [model, other]) {
      const data = references.map(({ tokens }) => datum(tokens));
      const { outputs } = await (await m.forward(data, CE)).result();
      references.forEach(({ next_token_logprobs }, i) => {
        next_token_logprobs.forEach((logprob, j) => {
          expect(Math.abs(outputs[i]!.logprobs![j]! - logprob)).toBeLessThan(2e-4);
        });
      });
    }
    await other.unload();
    await json.close();
  }, 300_000);

  it("has one meaning of a step: what is split over datums, doubled or padded is the same gradient", async () => {
    const tokens = [5, 6, 7, 8, 9, 10, 11];
    const whole = datum(tokens, [2, 2, 1, 1, 1, 1]);
    const norm = await gradNorm(CE, [scaled(whole, 1 / 8)]);
    expect(norm).toBeGreaterThan(1e-3);
    const parts = [datum(tokens, [2, 2, 0, 0, 0, 0]), datum(tokens, [0, 0, 1, 1, 1, 1])];
    const close = async (loss: Loss, data: readonly Datum[], expected: number) =>
      expect((await gradNorm(loss, data)) / expected).toBeCloseTo(1, 3);
    await close(
      CE,
      parts.map((d) => scaled(d, 1 / 8)),
      norm,
    );
    await close(
      CE,
      [...parts.map((d) => scaled(d, 1 / 8)), datum([1, 2, 3, 4, 5, 6, 7, 8, 9], Array(8).fill(0))],
      norm,
    );
    // A plain sum, where a mean over datums would be half of it.
    await close(CE, [scaled(whole, 1 / 8), scaled(whole, 1 / 8)], 2 * norm);
    const { outputs } = await (await model.forward([whole], CE)).result();
    const rl = (d: Datum): Datum => ({
      ...d,
      lossInputs: {
        ...d.lossInputs,
        logprobs: outputs[0]!.logprobs!,
        advantages: new Float32Array(6).fill(1),
      },
    });
    await close({ name: "importance_sampling" }, [rl(scaled(whole, 1 / 8))], norm);
    await close(
      { name: "importance_sampling" },
      parts.map((d) => rl(scaled(d, 1 / 8))),
      norm,
    );
    await close(
      { name: "ppo" },
      parts.map((d) => rl(scaled(d, 1 / 8))),
      norm,
    );
  }, 180_000);

  it("gets in two passes the gradient that a fused loss has, off policy and with masks", async () => {
    // Ratios on both sides of the clips, rewards of both signs, answers of unlike lengths: what a mean over datums would weigh
    // otherwise.
    const batch = await Promise.all(
      [
        { tokens: [5, 6, 7, 8, 9, 10, 11], mask: [0, 0, 1, 1, 1, 1], advantage: 0.7 },
        { tokens: [3, 4, 5, 6], mask: [0, 1, 1], advantage: -0.4 },
        { tokens: [9, 8, 7, 6, 5, 4, 3, 2, 1], mask: [0, 0, 0, 0, 1, 1, 1, 1], advantage: 0.2 },
      ].map(async ({ tokens, mask, advantage }): Promise<Datum> => {
        const plain = datum(tokens, mask);
        const { outputs } = await (await model.forward([plain], CE)).result();
        const drifted = outputs[0]!.logprobs!.map((logprob, i) => logprob + 0.3 * Math.sin(3 * i + tokens.length));
        const count = mask.reduce((a, b) => a + b, 0) * 3;
        return {
          input: plain.input,
          lossInputs: {
            target_tokens: plain.lossInputs.target_tokens!,
            weights: Float32Array.from(mask, (mark) => mark / count),
            logprobs: drifted,
            advantages: Float32Array.from(mask, (mark) => mark * advantage),
          },
        };
      }),
    );
    const normOf = async (loss: Loss, strategy: "fused" | "two_pass"): Promise<number> => {
      const plan = planGradient(kind, loss, batch, strategy);
      if (plan.type === "refused") throw new Error(plan.reason);
      expect(plan.type).toBe(strategy);
      const { forward, backward } = await requestCounts(model, plan);
      await (await sendGradient(model, plan, model.reserve(forward + backward))).pass.result();
      const metrics = await (await model.optimStep({ learning_rate: 0 })).result();
      return Object.entries(metrics).find(([name]) => name.includes("grad_norm"))![1];
    };
    const clip = { clip_low_threshold: 0.9, clip_high_threshold: 1.1 };
    const losses: Loss[] = [
      { name: "importance_sampling" },
      { name: "ppo", config: clip },
      { name: "cispo", config: clip },
    ];
    if (kind === "embedded")
      losses.push({ name: "gspo", config: clip }, { name: "dppo" }, { name: "dro", config: { beta: 0.1 } });
    for (const loss of losses) {
      const fused = await normOf(loss, "fused");
      expect(fused).toBeGreaterThan(1e-4);
      expect((await normOf(loss, "two_pass")) / fused).toBeCloseTo(1, 3);
    }
    // A loss that the server does not have is refused in one pass, and computed in two.
    if (kind !== "embedded") {
      expect(planGradient(kind, { name: "gspo" }, batch, "fused").type).toBe("refused");
      expect(await normOf({ name: "gspo", config: clip }, "two_pass")).toBeGreaterThan(1e-4);
    }
  }, 240_000);

  it("trains, saves, goes on from what it saved, and forgets the rest", async () => {
    const data = [scaled(datum([5, 6, 7, 8, 9, 10, 11, 12]), 1 / 7)];
    const trained = await session.createModel({ baseModel: modelFolder, loraRank: 4, seed: 1 });
    const lossOf = async (m: TrainingModel) => {
      const { outputs } = await (await m.forward(data, CE)).result();
      return -outputs[0]!.logprobs!.reduce((a, b) => a + b, 0) / 7;
    };
    const before = await lossOf(trained);
    for (let i = 0; i < 6; i += 1) {
      await trained.forwardBackward(data, CE);
      await (await trained.optimStep({ learning_rate: 0.02 })).result();
    }
    const after = await lossOf(trained);
    expect(after).toBeLessThan(before - 0.1);
    const path = await (await trained.saveWeights("state")).result();
    expect(path).toBe(`tinker://${trained.id}/weights/state`);
    const sampler = await (await trained.saveWeightsForSampler("weights")).result();
    expect(sampler).toBe(`tinker://${trained.id}/sampler_weights/weights`);
    expect((await client.listCheckpoints(trained.id)).map((c) => c.tinkerPath).sort()).toEqual([sampler, path].sort());
    expect(await client.checkpointModel(path)).toEqual({ baseModel: modelFolder, loraRank: 4 });
    const copy = await session.createModelFrom(path, { optimizer: true });
    expect(await lossOf(copy)).toBeCloseTo(after, 3);
    const archive = await client.rest.archive(sampler);
    if (!archive.supported) throw new Error(archive.reason);
    expect(archive.value.isMarker).toBe(false);
    let bytes = 0;
    for await (const part of archive.value.bytes) bytes += part.length;
    expect(bytes).toBeGreaterThan(1000);
    expect(await client.rest.setTtl(path, 3600)).toMatchObject({ supported: has.ttl });
    expect(await client.rest.publish(path)).toMatchObject({ supported: has.publish });
    expect(await client.rest.unpublish(path)).toMatchObject({ supported: has.publish });
    expect(await client.rest.sessions()).toMatchObject({ supported: has.sessions });
    expect((await client.rest.trainingRun(trained.id)).loraRank).toBe(4);
    expect(await client.deleteCheckpoint(path)).toBe(true);
    expect(await client.deleteCheckpoint(path)).toBe(false);
    await trained.unload();
    await copy.unload();
    const gone = await trained.optimStep({ learning_rate: 0 }).then(
      (future) =>
        future.result().then(
          () => "done",
          (e: unknown) => e,
        ),
      (e: unknown) => e,
    );
    expect(gone).toMatchObject({ kind: "gone" });
  }, 240_000);

  it("samples: greedily, by seed, with stops that are included, and scores prompts", async () => {
    const sampler = await (await model.sampler()).result();
    const prompt = Int32Array.from(references[0]!.tokens);
    const greedy = { prompt, params: { maxTokens: 8, temperature: 0, stop: [] } };
    const [a, b] = await sampler.sampleAll([greedy, { ...greedy, promptLogprobs: true }]);
    expect(a!.sequences[0]!.tokens).toHaveLength(8);
    expect(b!.sequences[0]!.tokens).toEqual(a!.sequences[0]!.tokens);
    expect(a!.sequences[0]).toMatchObject({ stopReason: "length" });
    expect(a!.sequences[0]!.logprobs).toHaveLength(8);
    expect(b!.promptLogprobs).toHaveLength(prompt.length);
    expect(b!.promptLogprobs![0]).toBeNaN();
    references[0]!.next_token_logprobs.forEach((logprob, i) => {
      expect(Math.abs(b!.promptLogprobs![i + 1]! - logprob)).toBeLessThan(2e-4);
    });
    const third = a!.sequences[0]!.tokens[2]!;
    const stop = [third];
    const stopped = await (await sampler.sample({ ...greedy, params: { ...greedy.params, stop } })).result();
    expect(stopped.sequences[0]!.stopReason).toBe("stop");
    expect(stopped.sequences[0]!.tokens.at(-1)).toBe(third);
    const seeded = { prompt, params: { maxTokens: 12, seed: 11, stop: [] }, count: 2 };
    const [x, y] = await sampler.sampleAll([seeded, seeded]);
    expect(x!.sequences.map((s) => s.tokens)).toEqual(y!.sequences.map((s) => s.tokens));
    expect(x!.sequences[0]!.tokens).not.toEqual(x!.sequences[1]!.tokens);
  }, 180_000);

  it("is not let sample weights that it does not have any more", async () => {
    const other = await session.createModel({ baseModel: modelFolder, loraRank: 4 });
    const old = await (await other.sampler()).result();
    const request = { prompt: Int32Array.of(5, 6, 7), params: { maxTokens: 4, temperature: 0, stop: [] } };
    const first = await (await old.sample(request)).result();
    await other.forwardBackward([datum([5, 6, 7, 8, 9])], CE);
    await (await other.optimStep({ learning_rate: 0.05 })).result();
    if (kind === "embedded") {
      const again = await (await old.sample(request)).result();
      expect(again.sequences[0]!.logprobs).toEqual(first.sequences[0]!.logprobs);
    } else await expect(old.sample(request)).rejects.toMatchObject({ kind: "rejected" });
    const fresh = await (await other.sampler()).result();
    await (await fresh.sample(request)).result();
    await other.unload();
  }, 300_000);

  it("has the gradient of a loss that the client computes", async () => {
    const data = [datum([5, 6, 7, 8, 9], [1, 1, 0, 2]), datum([9, 8, 7], [1, 0.5])];
    const custom = async (loss: CustomLoss) => {
      const { pass, loss: value } = await model.forwardBackwardCustom(data, loss);
      await pass.result();
      const metrics = await (await model.optimStep({ learning_rate: 0 })).result();
      return { value, norm: Object.entries(metrics).find(([name]) => name.includes("grad_norm"))![1] };
    };
    const weights = data.map((d) => d.lossInputs.weights as Float32Array);
    const dot = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0);
    const linear = await custom((logprobs) => ({
      loss: -logprobs.reduce((sum, row, i) => sum + dot(row, weights[i]!), 0),
      derivatives: weights.map((w) => w.map((v) => -v)),
    }));
    expect(linear.norm / (await gradNorm(CE, data))).toBeCloseTo(1, 3);
    // ½·ℓ² has the derivative ℓ: the same as cross entropy whose weights are −ℓ.
    const squares: CustomLoss = (logprobs) => ({
      loss: logprobs.reduce((sum, row) => sum + 0.5 * dot(row, row), 0),
      derivatives: logprobs,
    });
    const { outputs } = await (await model.forward(data, CE)).result();
    const equal = data.map((d, i) => ({
      ...d,
      lossInputs: { ...d.lossInputs, weights: outputs[i]!.logprobs!.map((v) => -v) },
    }));
    const squared = await custom(squares);
    expect(squared.value).toBeGreaterThan(0);
    expect(squared.norm / (await gradNorm(CE, equal))).toBeCloseTo(1, 3);
  }, 300_000);

  it("creates a model without the gradients that another client left in its slot", async () => {
    const others = await client.createSession({ tags: ["contract", "careless"] });
    const careless = await others.createModel({ baseModel: modelFolder, loraRank: 4 });
    await (await careless.forwardBackward([datum([5, 6, 7, 8, 9])], CE)).result();
    await careless.unload();
    const options = { baseModel: modelFolder, loraRank: 4, seed: 7 };
    const { model: clean, staleGradNorm } = await createCleanModel(session, kind, options);
    if (kind === "embedded") expect(staleGradNorm).toBeUndefined();
    else expect(staleGradNorm).toBeGreaterThan(0);
    const metrics = await (await clean.optimStep({ learning_rate: 0 })).result();
    expect(Object.entries(metrics).find(([name]) => name.includes("grad_norm"))![1]).toBe(0);
    await clean.unload();
    await others.finish();
  }, 300_000);

  it("trains a supervised run of rlcli, which is stopped and goes on", async () => {
    const { order, folder } = makeOrder({
      model: modelFolder,
      settings: { lora_rank: 4, learning_rate: 0.02, normalize: "token", test_size: 3 },
      eval_every: 4,
      length: { steps: 8 },
    });
    const stop = new AbortController();
    const deps = (more: Partial<TrainingDeps>): TrainingDeps => ({
      folder,
      connect: async () => ({ url: server.url, token: TOKEN, serverRun: "life" }),
      modelFolder,
      stop: new AbortController().signal,
      now: () => new Date(),
      ...more,
    });
    let results = 0;
    const at = (point: string) => {
      if (point === "step:done" && ++results === 3) stop.abort();
    };
    expect(await runTraining(order, deps({ stop: stop.signal, at }))).toMatchObject({ status: "interrupted" });
    expect(await runTraining(order, deps({}))).toEqual({ status: "complete", step: 8 });
    const lines = readFileSync(join(folder, "metrics.jsonl"), "utf8").trim().split("\n").slice(1);
    const metrics = lines.map((line) => JSON.parse(line) as { step: number; loss: number; heldOutLoss?: number });
    expect(metrics.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    // An adapter begins without effect, so the first loss is the base model's, whatever the server.
    expect(metrics[0]!.loss).toBeCloseTo(6.384, 3);
    expect(metrics[7]!.heldOutLoss!).toBeLessThan(metrics[3]!.heldOutLoss!);
    expect(metrics[7]!.loss).toBeLessThan(metrics[0]!.loss - 0.3);
  }, 240_000);

  it("refuses what it cannot do, in words", async () => {
    await expect(session.resumeModel("model_00000000", 1).optimStep({ learning_rate: 0 })).rejects.toMatchObject({
      kind: "gone",
    });
    await expect(client.checkpointModel("tinker://model_00000000/weights/none")).rejects.toMatchObject({ status: 404 });
    await expect(model.saveWeights("a name")).rejects.toMatchObject({ kind: "rejected" });
    const bad = { name: "importance_sampling", config: { nonsense: 1 } };
    const fresh = await session.createModel({ baseModel: modelFolder, loraRank: 4 });
    await expect(fresh.forwardBackward([datum([1, 2, 3])], bad)).rejects.toMatchObject({
      kind: "rejected",
      reason: expect.stringContaining("nonsense"),
    });
    await fresh.unload();
    await session.finish();
  }, 300_000);
});
