/**
 * Exactly once, for reinforcement learning on the real embedded server: a run whose worker or server is killed ends with the very
 * bytes, metrics and rollouts of one that ran through, and what was sampled before is not sampled again.
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { digestBytes } from "../../../src/digest.ts";
import { signalProcess } from "../../../src/process.ts";
import type { MetricsLine } from "../../../src/run-record.ts";
import { checkpointFolder, parseCheckpointPath } from "../../../src/servers/checkpoints.ts";
import { ensureEmbedded } from "../../../src/servers/embedded/ensure.ts";
import { readRuntime, stopServer } from "../../../src/servers/runtime.ts";
import { readRunRecord } from "../../../src/training/progress.ts";
import { readEvals } from "../../../src/training/rl/evals.ts";
import { readRollouts, stepsWithRollouts } from "../../../src/training/rl/rollout-files.ts";
import { bundleChild, runChild } from "../crash.ts";
import { makeRlOrder } from "./order.ts";

const base = mkdtempSync(join(tmpdir(), "rlcli-rl-crash-"));
const serverFolder = join(base, "server");
let bundle: string;

const ensure = () => ensureEmbedded({ folder: serverFolder, model: "builtin:tiny", cacheFolder: join(base, "cache") });

beforeAll(async () => {
  bundle = await bundleChild();
  await ensure();
}, 300_000);
afterAll(async () => {
  await stopServer(serverFolder, { force: true, timeoutMs: 60_000 });
  rmSync(base, { recursive: true, force: true });
});

async function go(folder: string, killAt?: number, killAfterMs?: number) {
  const { url, token, serverRun, modelFolder } = await ensure();
  const connection = { url, token, serverRun };
  const kill = killAt === undefined ? {} : { killAt };
  return runChild(bundle, { folder, connection, modelFolder, ...kill }, killAfterMs);
}

async function killServer(): Promise<void> {
  const found = readRuntime(serverFolder);
  if (found.state !== "running") return;
  signalProcess(found.runtime.process, "SIGKILL");
  await expect.poll(() => readRuntime(serverFolder).state, { timeout: 60_000 }).toBe("died");
}

const OF_THE_MACHINE = /^(time|memory|rollouts\/reused)/;

/** Everything of a run that must not depend on what happened to its processes. */
function outcome(folder: string) {
  const { durable } = readRunRecord(folder);
  const { training, sampler } = durable.at(-1)!;
  const digest = (path: string, file: string) =>
    digestBytes(readFileSync(join(checkpointFolder(serverFolder, parseCheckpointPath(path)!), file)));
  const lines = readFileSync(join(folder, "metrics.jsonl"), "utf8").split("\n").slice(1, -1);
  const metrics = lines.map((line) => {
    const { step, loss, gradNorm, evalReward, values = {} } = JSON.parse(line) as MetricsLine;
    const kept = Object.entries(values).filter(([name]) => !OF_THE_MACHINE.test(name));
    return { step, loss, gradNorm, evalReward, values: Object.fromEntries(kept) };
  });
  const byPlace = (step: number) =>
    [...new Map(readRollouts(folder, step).map((r) => [`${r.group} ${r.index}`, r])).values()].sort(
      (a, b) => a.group - b.group || a.index - b.index,
    );
  return {
    model: digest(training, "model.safetensors"),
    optimizer: digest(training, "optimizer.safetensors"),
    sampler: digest(sampler!, "model.safetensors"),
    metrics,
    rollouts: stepsWithRollouts(folder).map(byPlace),
    evals: readEvals(folder).map(({ step, metrics: m }) => ({ step, ...m })),
    kept: durable.map((c) => [c.step, c.evalReward, c.sampler !== undefined]),
  };
}

let whole: ReturnType<typeof outcome> & { points: readonly string[] };

test("trains on the rewards of an environment", { timeout: 180_000 }, async () => {
  const { folder } = makeRlOrder();
  const { end, points } = await go(folder);
  expect(end).toEqual({ status: "complete", step: 4 });
  whole = { ...outcome(folder), points };
  expect(whole.metrics.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
  expect(whole.evals.map(({ step }) => step)).toEqual([0, 2, 4]);
  expect(whole.rollouts.map((step) => step.length)).toEqual([16, 16, 4, 16]);
  expect(whole.metrics[0]!.values["groups/used"]).toBeGreaterThan(0);
  expect(readdirSync(join(folder, "evals", "letters"))).toHaveLength(3);
});

/** The last point of each name; where a server dies with the worker, everything since the last checkpoint is done again. */
const POINTS: readonly (readonly [point: string, withServer: boolean])[] = [
  ["sampler:journaled", false],
  ["rollouts:group", true],
  ["part:journaled", false],
  ["part:sent", true],
  ["update:sent", false],
  ["step:metrics", false],
  ["save:journaled", false],
];

/** In `test:all` too. */
const MORE_POINTS: typeof POINTS = [
  ["open:journaled", false],
  ["sampler:ready", true],
  ["rollouts:group", false],
  ["part:rollouts-synced", false],
  ["part:journaled", true],
  ["part:sent", false],
  ["step:sent", false],
  ["step:results", true],
  ["eval:played", false],
  ["step:done", false],
  ["step:done", true],
  ["save:weights-sent", true],
];

const isWhole = process.env.RLCLI_TEST_ALL !== undefined;

test.each(isWhole ? [...POINTS, ...MORE_POINTS] : POINTS)(
  "killed at %s; server killed too: %j",
  { timeout: 180_000 },
  async (point, withServer) => {
    const { folder } = makeRlOrder();
    const { points, ...expected } = whole;
    expect(points).toContain(point);
    // Not the very last one: a step before it, so that much is left to do.
    const places = points.flatMap((name, at) => (name === point ? [at] : []));
    const at = places[Math.floor(places.length * 0.7)] as number;
    expect((await go(folder, at + 1)).killed).toBe(true);
    if (withServer) await killServer();
    expect((await go(folder)).end).toEqual({ status: "complete", step: 4 });
    expect(outcome(folder)).toEqual(expected);
  },
);

test("what was sampled before the kill is not sampled again", { timeout: 180_000 }, async () => {
  const { folder } = makeRlOrder();
  const before = await go(folder, whole.points.indexOf("update:sent") + 1);
  const after = await go(folder);
  const played = (of: readonly string[]) => of.filter((point) => point === "rollouts:group").length;
  // Which points lie before the kill depends on how groups and parts interleave; an update is of two groups.
  expect(played(before.points)).toBeGreaterThanOrEqual(2);
  expect(played(before.points) + played(after.points)).toBe(played(whole.points));
});

test("an aim that was reached right before the kill ends the run", { timeout: 180_000 }, async () => {
  const aimed = () => makeRlOrder({ rl: { evals: [], early_stop: { target: 0, window: 2 } } });
  const { end, points } = await go(aimed().folder);
  expect(end).toEqual({ status: "complete", step: 2 });
  const { folder } = aimed();
  expect((await go(folder, points.lastIndexOf("step:done") + 1)).killed).toBe(true);
  expect((await go(folder)).end).toEqual({ status: "complete", step: 2 });
  expect(readRunRecord(folder).durable.at(-1)).toMatchObject({ step: 2, final: { steps: 4 } });
});

test("off policy: samples ahead by no more than is allowed, and resumes", { timeout: 180_000 }, async () => {
  const { folder } = makeRlOrder({ settings: { max_steps_off_policy: 1 }, length: { steps: 6 } });
  const first = await go(folder, 40);
  expect(first.end).toBeUndefined();
  expect((await go(folder)).end).toEqual({ status: "complete", step: 6 });
  const { metrics, rollouts } = outcome(folder);
  expect(metrics.map(({ step }) => step)).toEqual([1, 2, 3, 4, 5, 6]);
  expect(rollouts.map((step) => step.length)).toEqual([16, 16, 16, 16, 16, 16]);
  const ages = metrics.map(({ values }) => values["off_policy/steps"] as number);
  expect(Math.max(...ages)).toBeLessThanOrEqual(1);
  expect(Math.max(...ages)).toBeGreaterThan(0);
});

test.skipIf(!isWhole)("60 random kills", { timeout: 3_600_000 }, async () => {
  const { points: _, ...expected } = whole;
  for (let kills = 0; kills < 60; ) {
    const { folder } = makeRlOrder();
    for (;;) {
      const result = await (Math.random() < 0.5
        ? go(folder, 1 + Math.floor(Math.random() * 80))
        : go(folder, undefined, 300 + Math.random() * 5000));
      if (!result.killed) break;
      kills += 1;
      if (Math.random() < 0.3) await killServer();
    }
    expect(outcome(folder)).toEqual(expected);
  }
});
