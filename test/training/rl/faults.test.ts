// Whole runs against a scripted policy: the reward is known, the faults come on schedule, and every step is applied once.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import type { MetricsLine, RlSettings, RunEnd, RunEvent } from "../../../src/run-record.ts";
import { loadRenderer } from "../../../src/tokens/load.ts";
import { isLost } from "../../../src/training/rl/rollout.ts";
import { readRollouts } from "../../../src/training/rl/rollout-files.ts";
import { runTraining } from "../../../src/training/training.ts";
import {
  type Answer,
  type AskedFor,
  BROKEN,
  BUSY,
  DROP_AFTER,
  DROP_HALF_WAY,
  EXPIRE,
  type PolicyOptions,
  RESTART,
  startPolicyServer,
} from "../../support/policy-server.ts";
import type { FakeServer } from "../../tinker/fake-server.ts";
import { makeRlOrder, type RlOptions } from "./order.ts";

const modelFolder = fileURLToPath(new URL("../../fixtures/tiny-qwen3", import.meta.url));
const renderer = await loadRenderer(modelFolder);
const CODEC = {
  encode: (text: string) => renderer.tokenizer.encode({ text, marks: [] }),
  decode: (tokens: readonly number[]) => renderer.tokenizer.decode(tokens),
};
const [END] = renderer.stopTokens() as [number];

/** Half of each group says a letter, which is what the grader wants. */
const halfRight = (_: string, { sample }: AskedFor): Answer => ({
  text: sample % 2 === 0 ? "yes" : "123",
  endToken: END,
});

/** Plays SkyRL's jax. */
function asJax(server: FakeServer): void {
  server.skyrl = "jax";
  server.reduction = "mean of means";
}

interface Outcome {
  readonly end: RunEnd;
  readonly folder: string;
  readonly metrics: readonly MetricsLine[];
  readonly events: readonly RunEvent[];
  readonly steps: number;
}

async function run(policy: Partial<PolicyOptions>, options: RlOptions = {}): Promise<Outcome> {
  const server = await startPolicyServer({ answer: halfRight, codec: CODEC, ...policy });
  onTestFinished(() => server.stop());
  const settings: Partial<RlSettings> = { loss: { type: "importance_sampling", options: {} }, ...options.settings };
  const { order, folder } = makeRlOrder({
    model: "toy",
    length: { steps: 3 },
    rl: { evals: [], ...options.rl },
    ...options,
    settings,
  });
  const end = await runTraining(order, {
    folder,
    connect: async () => ({ url: server.url, token: "tml-test", serverRun: server.server.life }),
    modelFolder,
    stop: new AbortController().signal,
    now: () => new Date(),
    giveUpAfterMs: 100_000,
  });
  const read = <T>(file: string): T[] =>
    readFileSync(join(folder, file), "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => JSON.parse(line) as T);
  const last = [...server.server.checkpoints.values()].at(-1);
  return { end, folder, metrics: read("metrics.jsonl"), events: read("events.jsonl"), steps: last?.model.steps ?? 0 };
}

test("rewards and metrics are those of the script; each update is applied once", async () => {
  const { end, metrics, steps } = await run({});
  expect(end).toEqual({ status: "complete", step: 3 });
  expect(metrics.map(({ values }) => values!["reward/mean"])).toEqual([0.5, 0.5, 0.5]);
  expect(metrics[0]!.values).toMatchObject({ "groups/used": 4, "rollouts/lost": 0, "answer/cut": 0 });
  // Two substeps a step; the third has one group, the rest of an epoch of nine tasks.
  expect(steps).toBe(5);
});

test.each([
  ["429 to samples", "/asample", BUSY],
  ["500 to samples", "/asample", BROKEN],
  ["a sample's connection drops", "/asample", DROP_HALF_WAY],
  ["a sample is taken and the answer lost", "/asample", DROP_AFTER],
  ["500 to forward_backward", "/forward_backward", BROKEN],
  ["an update is taken and the answer lost", "/optim_step", DROP_AFTER],
  ["500 to the sampler", "/save_weights_for_sampler", BROKEN],
  ["a forgotten future", "/retrieve_future", EXPIRE],
] as const)("%s", async (_, path, fault) => {
  const whole = await run({});
  const { end, metrics, steps } = await run({ faults: [{ path, at: 2, fault }] });
  expect(end).toEqual({ status: "complete", step: 3 });
  expect(steps).toBe(whole.steps);
  expect(metrics.map(({ loss }) => loss)).toEqual(whole.metrics.map(({ loss }) => loss));
});

test("the server starts anew in the middle: from the last checkpoint, each step once", {
  timeout: 300_000,
}, async () => {
  const { end, steps, metrics } = await run(
    { faults: [{ path: "/forward_backward", at: 8, fault: RESTART }] },
    { save_every: 1, length: { steps: 4 } },
  );
  expect(end).toEqual({ status: "complete", step: 4 });
  expect(steps).toBe(7);
  expect(metrics.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
});

test("constant groups are dropped and counted, and a run without others stops in words", {
  timeout: 300_000,
}, async () => {
  const { end, metrics, steps } = await run({ answer: () => ({ text: "123", endToken: END }) }, {
    length: { steps: 9 },
    groups: undefined,
  } as RlOptions);
  expect(metrics).toHaveLength(5);
  expect(metrics[0]!.values).toMatchObject({ "groups/constant": 4, "groups/used": 0 });
  expect(steps).toBe(0);
  expect(end).toMatchObject({ status: "failed", step: 5, diagnostics: [{ code: "RL8103" }] });
});

/** Its words for "bad" are no grade. */
const TOUCHY = {
  type: "command",
  name: "c",
  weight: 1,
  options: {
    command: [
      process.execPath,
      "-e",
      "require('readline').createInterface({input:process.stdin}).on('line',l=>{const {completion}=JSON.parse(l);console.log(completion.includes('bad')?'what?':completion==='yes'?1:0)})",
    ],
  },
  timeoutMs: 60_000,
  concurrency: 2,
};

test("a grader that fails now and then loses those answers only", async () => {
  const answer = (_: string, { sample, request }: AskedFor): Answer => ({
    text: request === 1 && sample === 3 ? "bad" : sample % 2 === 0 ? "yes" : "123",
    endToken: END,
  });
  const { end, metrics, folder } = await run({ answer }, { environment: { graders: [TOUCHY] }, length: { steps: 1 } });
  expect(end).toEqual({ status: "complete", step: 1 });
  expect(metrics[0]!.values).toMatchObject({ "rollouts/lost": 1, "rollouts/graded": 15, "groups/used": 4 });
  expect(readRollouts(folder, 1).filter(isLost)).toMatchObject([{ fault: { code: "RL7103" } }]);
});

test("past the tolerated rate the run stops and quotes the fault", async () => {
  const grader = {
    type: "command",
    name: "c",
    weight: 1,
    options: { command: [process.execPath, "-e", "setInterval(()=>{},1000)"] },
    timeoutMs: 200,
    concurrency: 8,
  };
  const { end, folder } = await run({}, { environment: { graders: [grader] } });
  expect(end).toMatchObject({ status: "failed", step: 0, diagnostics: [{ code: "RL8101" }] });
  expect(end.diagnostics![0]!.detail).toContain("did not answer within 0.2 s");
  // What was lost is tried again by a resumed run.
  expect(readRollouts(folder, 1)).toEqual([]);
});

test.each([
  // Nobody was told yet: the next process says it.
  ["losses:ended", ["failed", "complete"]],
  ["losses:removed", ["complete"]],
] as const)(
  "killed at %s, with parts of the step sent: goes on with what was not lost",
  { timeout: 300_000 },
  async (point, statuses) => {
    // A half of the last two groups, which leaves enough of each to be trained on.
    const answer = (_: string, { sample, request }: AskedFor): Answer => ({
      text: request > 1 && request < 4 && sample > 1 ? "bad" : sample % 2 === 0 ? "yes" : "123",
      endToken: END,
    });
    const server = await startPolicyServer({ answer, codec: CODEC });
    onTestFinished(() => server.stop());
    const settings: Partial<RlSettings> = { loss: { type: "importance_sampling", options: {} } };
    const environment = { graders: [TOUCHY] };
    const { order, folder } = makeRlOrder({
      model: "toy",
      length: { steps: 2 },
      rl: { evals: [] },
      settings,
      environment,
    });
    const go = (at?: (point: string) => void) =>
      runTraining(order, {
        folder,
        connect: async () => ({ url: server.url, token: "tml-test", serverRun: server.server.life }),
        modelFolder,
        stop: new AbortController().signal,
        now: () => new Date(),
        giveUpAfterMs: 100_000,
        ...(at ? { at } : {}),
      });
    const killed = go((passed) => {
      if (passed === point) throw new Error("killed");
    });
    await expect(killed).rejects.toThrow("killed");
    expect(readFileSync(join(folder, "journal.jsonl"), "utf8").match(/"t":"part"/g)).toHaveLength(4);
    for (const status of statuses) expect(await go()).toMatchObject({ status });
    expect(readRollouts(folder, 1).filter(isLost)).toEqual([]);
    const last = [...server.server.checkpoints.values()].at(-1);
    expect(last?.model.steps).toBe(4);
  },
);

test("ends early where the aim is reached, and what is saved is the end of the whole length", {
  timeout: 300_000,
}, async () => {
  const { end, folder } = await run({}, {
    length: { steps: 50 },
    rl: { evals: [], early_stop: { target: 0.5, window: 2 } },
  } as RlOptions);
  expect(end).toEqual({ status: "complete", step: 2 });
  const last = JSON.parse(readFileSync(join(folder, "checkpoints.jsonl"), "utf8").trim().split("\n").at(-1)!);
  expect(last).toMatchObject({ step: 2, final: { steps: 50 } });
});

test("a short run in which nothing could be learned says so", async () => {
  const answer = (): Answer => ({ text: "yes", endToken: END });
  const { end } = await run({ answer }, { length: { steps: 2 } });
  expect(end).toMatchObject({ status: "failed", diagnostics: [{ code: "RL8103" }] });
  expect(end.diagnostics![0]!.detail).toMatch(/In the 2 steps up to step 2/);
});

test("stops where the reward collapses", async () => {
  const answer = (_: string, { sample, request }: AskedFor): Answer => ({
    text: (request < 8 ? sample > 0 : sample > 2) ? "yes" : "123",
    endToken: END,
  });
  const { end } = await run({ answer }, {
    length: { steps: 50 },
    rl: { evals: [], early_stop: { collapse: 0.6, window: 2 } },
  } as RlOptions);
  expect(end).toMatchObject({ status: "failed", diagnostics: [{ code: "RL8104" }] });
});

test("the KL penalty asks the reference about every answer", async () => {
  const settings = { kl_penalty: 0.1, normalize: "token" } as const;
  const { end, folder, metrics } = await run({}, { settings, length: { steps: 1 } });
  expect(end).toEqual({ status: "complete", step: 1 });
  expect(metrics[0]!.values!["kl/reference"]).toEqual(expect.any(Number));
  for (const rollout of readRollouts(folder, 1)) expect(!isLost(rollout) && rollout.reference).toHaveLength(1);
});

test("a server without the loss is told at once, with those that have it", async () => {
  const loss = { type: "gspo", options: {} };
  const { end } = await run({ prepare: asJax }, { settings: { loss, optimizer: {} } });
  expect(end).toMatchObject({ status: "failed", step: 0, diagnostics: [{ code: "RL8011" }] });
  expect(end.diagnostics![0]!.detail).toMatch(/two_pass/);
});
