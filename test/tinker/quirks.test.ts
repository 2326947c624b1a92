// One meaning of a step on every kind of server. The scripted server reduces as the kind it plays does, and trains a real
// model: its gradient norms and weights are those of the sum that was asked for, or the step is refused in words.
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { LOSSES } from "../../src/losses/registry.ts";
import {
  type Datum,
  ignoredSettings,
  type Loss,
  planStep,
  SERVER_TRAITS,
  type ServerKind,
  serverKind,
  TinkerClient,
  type TrainingModel,
} from "../../src/tinker/index.ts";
import { FakeServer } from "./fake-server.ts";

const KINDS = Object.keys(SERVER_TRAITS) as ServerKind[];
const CE: Loss = { name: "cross_entropy" };
const IS: Loss = { name: "importance_sampling" };

let server: FakeServer;
let client: TinkerClient;
beforeEach(async () => {
  server = await new FakeServer().start();
  client = new TinkerClient({ baseUrl: server.url });
});
afterEach(async () => {
  await client.close();
  await server.stop();
});

/** Makes the server play a kind. */
function play(kind: ServerKind): void {
  server.isEmbedded = kind === "embedded";
  server.skyrl = kind === "skyrl-jax" ? "jax" : kind.startsWith("skyrl") ? "fsdp" : undefined;
  server.reduction = SERVER_TRAITS[kind].reduction;
  server.readsRlWeights = SERVER_TRAITS[kind].readsRlWeights;
}

const newModel = async () => (await client.createSession()).createModel({ baseModel: "toy", loraRank: 0 });

/** A datum with the given weights; every second one with advantages of its own. */
function datum(tokens: readonly number[], weights: readonly number[], advantages?: readonly number[]): Datum {
  const rl = advantages && {
    advantages: Float32Array.from(advantages),
    logprobs: Float32Array.from(tokens.slice(1), (_, i) => -1 - i / 10),
  };
  return {
    input: Int32Array.from(tokens.slice(0, -1)),
    lossInputs: { target_tokens: Int32Array.from(tokens.slice(1)), weights: Float32Array.from(weights), ...rl },
  };
}

/** Weights as a loop scales them: their plain sum is the mean that `normalize` asks for. */
function normalised(data: readonly Datum[], normalize: "token" | "sequence"): Datum[] {
  const sum = (d: Datum) => (d.lossInputs.weights as Float32Array).reduce((a, b) => a + b, 0);
  const total = data.reduce((n, d) => n + sum(d), 0);
  return data.map((d) => {
    const divisor = normalize === "token" ? total : sum(d) * data.length;
    const weights = (d.lossInputs.weights as Float32Array).map((w) => (w === 0 ? 0 : w / divisor));
    return { ...d, lossInputs: { ...d.lossInputs, weights } };
  });
}

/** Sends a step as a loop does; returns the norm of its gradient. */
async function step(kind: ServerKind, model: TrainingModel, loss: Loss, data: readonly Datum[]): Promise<number> {
  let plan = planStep(kind, loss, data);
  if (plan.type === "refused") throw new Error(plan.reason);
  if (plan.type === "forward first") {
    const { outputs } = await (await model.forward(data, loss)).result();
    plan = { type: "send", ...plan.from(outputs.map((o) => o.logprobs!)) };
  }
  await (await model.forwardBackward(plan.data, plan.loss)).result();
  const metrics = await (await model.optimStep({ learning_rate: 0.05 })).result();
  return metrics["skyrl.ai/grad_norm"]!;
}

/** Gradient norms of three steps and the weights after them. */
async function train(kind: ServerKind, loss: Loss, data: readonly Datum[]): Promise<number[]> {
  play(kind);
  const model = await newModel();
  const norms = [];
  for (let i = 0; i < 3; i += 1) norms.push(await step(kind, model, loss, data));
  return [...norms, ...server.models.get(model.id)!.weights];
}

const uneven = [
  datum([1, 2, 3, 4, 5], [0, 1, 1, 1]),
  datum([6, 7], [1]),
  datum([2, 4, 6, 8], [0.5, 0, 0.25]),
  datum([9, 9, 9], [0, 0]),
];
const sampled = [
  datum([1, 2, 3, 4, 5], [0, 1, 1, 1], [0, 2, 2, 2]),
  datum([6, 7, 8], [0, 1], [0, -1]),
  datum([2, 4, 6, 8], [0, 1, 1], [0, 0.5, -3]),
];

describe("the gradient is that of the sum asked for", () => {
  const cases: [string, Loss, readonly Datum[]][] = [
    ["cross entropy by token", CE, normalised(uneven, "token")],
    ["cross entropy by sequence", CE, normalised(uneven.slice(0, 3), "sequence")],
    ["cross entropy as a plain sum", CE, uneven],
    ["cross entropy with negative weights", CE, [datum([1, 2, 3], [-1, 0.5]), datum([4, 5], [1])]],
    ["importance sampling by token", IS, normalised(sampled, "token")],
    ["importance sampling by sequence", IS, normalised(sampled, "sequence")],
    ["importance sampling as a plain sum", IS, sampled],
  ];
  test.each(cases)("%s", async (_, loss, data) => {
    const reference = await train("embedded", loss, data);
    expect(reference[0]).toBeGreaterThan(0.01);
    for (const kind of KINDS) {
      const got = await train(kind, loss, data);
      got.forEach((value, i) => {
        expect(Math.abs(value - reference[i]!), `${kind} ${i}`).toBeLessThan(1e-5);
      });
    }
  });

  test("without the adaptation, jax trains another run: the scripted server really reduces otherwise", async () => {
    const data = normalised(uneven, "token");
    const [reference] = await train("embedded", CE, data);
    play("skyrl-jax");
    const model = await newModel();
    await (await model.forwardBackward(data, CE)).result();
    const metrics = await (await model.optimStep({ learning_rate: 0.05 })).result();
    expect(Math.abs(metrics["skyrl.ai/grad_norm"]! - reference!)).toBeGreaterThan(0.01);
  });

  test("what a sum-reducing server is sent for cross entropy is what the loop gave, bit for bit", () => {
    for (const kind of KINDS.filter((k) => SERVER_TRAITS[k].reduction === "sum")) {
      const plan = planStep(kind, CE, uneven);
      expect(plan.type === "send" && plan.data).toBe(uneven);
    }
  });

  test("on jax a mean over sequences needs no forward pass, one over tokens of unlike length does", () => {
    expect(planStep("skyrl-jax", CE, normalised(uneven.slice(0, 3), "sequence")).type).toBe("send");
    expect(planStep("skyrl-jax", CE, normalised(uneven, "token")).type).toBe("forward first");
    const even = normalised([uneven[0]!, uneven[0]!], "token");
    expect(planStep("skyrl-jax", CE, even).type).toBe("send");
  });
});

describe("what a server would do otherwise is refused", () => {
  const reasonOf = (kind: ServerKind, loss: Loss, data = sampled) => {
    const plan = planStep(kind, loss, data);
    return plan.type === "refused" ? plan.reason : undefined;
  };
  test.each([
    ["skyrl-jax", { name: "gspo" }, "no loss gspo"],
    ["skyrl-megatron", { name: "ppo_critic" }, "no loss ppo_critic"],
    ["skyrl-fsdp", { name: "cispo", config: { clip_low_threshold: 0.8 } }, "clip_low_threshold: it is 0, not 0.8"],
    ["hosted", { name: "dro", config: { beta: 0.1 } }, "cannot be given weights"],
  ] as [ServerKind, Loss, string][])("%s: %j", (kind, loss, words) => {
    expect(reasonOf(kind, loss)).toContain(words);
  });
  test("fsdp's cispo is sent without options, and only if they are its own", () => {
    const own = { clip_low_threshold: 0, clip_high_threshold: 5 };
    const plan = planStep("skyrl-fsdp", { name: "cispo", config: own }, sampled);
    expect(plan.type === "send" && plan.loss).toEqual({ name: "cispo" });
    const other = planStep("skyrl-jax", { name: "cispo", config: own }, sampled);
    expect(other.type === "send" && other.loss).toEqual({ name: "cispo", config: own });
  });
  test("targets that are not the shifted input, where only those are scored", () => {
    const lossInputs = { ...sampled[0]!.lossInputs, target_tokens: Int32Array.of(2, 3, 9, 5) };
    const data = [{ ...sampled[0]!, lossInputs }];
    expect(reasonOf("skyrl-fsdp", CE, data)).toContain("own next tokens");
    expect(reasonOf("skyrl-jax", CE, data)).toBeUndefined();
  });
  test("optimizer settings that have no effect are named", () => {
    const params = { learning_rate: 1, beta1: 0.9, grad_clip_norm: 1 };
    expect(ignoredSettings("embedded", params)).toEqual([]);
    expect(ignoredSettings("skyrl-jax", params)).toEqual(["grad_clip_norm"]);
    expect(ignoredSettings("skyrl-jax", { ...params, grad_clip_norm: 0 })).toEqual([]);
    expect(ignoredSettings("skyrl-fsdp", params)).toEqual(["beta1", "grad_clip_norm"]);
  });
});

test("gspo's mean over a sequence has plain masks", () => {
  const data = normalised(sampled, "token");
  const maskOf = (kind: ServerKind, name: string) => {
    const plan = planStep(kind, { name: "gspo" }, data);
    return plan.type === "send" ? plan.data[0]!.lossInputs[name] : undefined;
  };
  expect(maskOf("skyrl-fsdp", "weights")).toEqual(Float32Array.of(0, 1, 1, 1));
  expect(maskOf("hosted", "sequence_ratio_mask")).toEqual(Float32Array.of(0, 1, 1, 1));
  expect(maskOf("hosted", "weights")).toBeUndefined();
});

test("both tables of losses say the same", () => {
  const backendOf = (kind: ServerKind) => kind.replace("skyrl-", "") as (typeof LOSSES)[number]["backends"][number];
  for (const kind of KINDS) {
    const listed = LOSSES.filter(({ backends }) => backends.includes(backendOf(kind))).map(({ name }) => name);
    expect([...SERVER_TRAITS[kind].losses].sort(), kind).toEqual(listed.sort());
  }
});

describe("probing", () => {
  test.each(KINDS.filter((kind) => kind !== "skyrl-megatron"))("%s is told by its answers", async (kind) => {
    play(kind);
    const model = await newModel();
    expect(await serverKind(client, model)).toBe(kind);
    // Outside the model's order: its own numbers are untouched.
    expect(model.nextSeqId).toBe(1);
    const [probe] = server.requests.filter((r) => r.path === "/forward_backward");
    expect(probe?.body.seq_id).toBeUndefined();
    await (await model.forwardBackward(uneven, CE)).result();
  });
});

describe("samples from weights that are not the newest of a living model", () => {
  const sampleOf = { prompt: Int32Array.of(1), params: { maxTokens: 1, stop: [] } };
  const outcome = (work: Promise<unknown>) =>
    work.then(
      () => "sampled",
      (e: { kind: string }) => e.kind,
    );
  const CASES: Record<ServerKind, [trained: string, savedAgain: string]> = {
    embedded: ["sampled", "sampled"],
    hosted: ["sampled", "sampled"],
    "skyrl-jax": ["rejected", "rejected"],
    "skyrl-fsdp": ["sampled", "rejected"],
    "skyrl-megatron": ["sampled", "rejected"],
  };
  test.each(KINDS)("%s", async (kind) => {
    play(kind);
    await client.close();
    client = new TinkerClient({ baseUrl: server.url, kind });
    const session = await client.createSession();
    const model = await session.createModel({ baseModel: "toy", loraRank: 0 });
    const live = await (await model.sampler()).result();
    await (await live.sample(sampleOf)).result();
    await (await model.optimStep({ learning_rate: 0.1 })).result();
    const path = await (await model.saveWeightsForSampler("named")).result();
    const named = await session.createSampler({ modelPath: path });
    expect(await outcome(live.sample(sampleOf))).toBe(CASES[kind][1]);
    expect(await outcome(named.sample(sampleOf))).toBe("sampled");
    await (await model.optimStep({ learning_rate: 0.1 })).result();
    const before = server.count("/asample");
    expect(await outcome(named.sample(sampleOf))).toBe(CASES[kind][0]);
    expect(server.count("/asample") - before).toBe(CASES[kind][0] === "sampled" ? 1 : 0);
    const older = await session.createSampler({ modelPath: `tinker://${model.id}/sampler_weights/of-another-process` });
    expect(await outcome(older.sample(sampleOf))).toBe(
      SERVER_TRAITS[kind].samplers === "snapshots" ? "sampled" : "rejected",
    );
    const base = await session.createSampler({ baseModel: "toy" });
    expect(await outcome(base.sample(sampleOf))).toBe("sampled");
    await model.unload();
    expect(await outcome(named.sample(sampleOf))).toBe("sampled");
  });
});
