/**
 * Exactly once. What these tests pin down:
 * 1. A worker killed at any point and started again ends with the weights of one that was not, bit for bit.
 * 2. No optimizer step is lost or doubled: the model behind the final checkpoint has taken exactly the ordered steps.
 * 3. metrics.jsonl has one line for each step, with the same losses.
 * 4. All that holds whether the server's model lived on or was lost with its process.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { MetricsLine } from "../../src/run-record.ts";
import { readRunRecord } from "../../src/training/progress.ts";
import { FakeServer } from "../tinker/fake-server.ts";
import { bundleChild, type ChildResult, runChild } from "./crash.ts";
import { makeOrder } from "./order.ts";

const bundle = await bundleChild();
const ORDER = { length: { steps: 11 }, save_every: 4, eval_every: 3, settings: { test_size: 2 } } as const;

/** A run on a server of its own, driven by `drive` until it is complete. */
async function withRun(
  drive: (
    go: (kill?: { at?: number; afterMs?: number }) => Promise<ChildResult>,
    server: FakeServer,
    folder: string,
  ) => Promise<void>,
) {
  const server = await new FakeServer().start();
  try {
    const { folder } = makeOrder(ORDER);
    const go = ({ at, afterMs }: { at?: number; afterMs?: number } = {}) => {
      const connection = { url: server.url, token: "tml-test", serverRun: server.life };
      return runChild(bundle, { folder, connection, ...(at === undefined ? {} : { killAt: at }) }, afterMs);
    };
    await drive(go, server, folder);
    const last = readRunRecord(folder).durable.at(-1)!;
    const { model } = server.checkpoints.get(last.training)!;
    const lines = readFileSync(join(folder, "metrics.jsonl"), "utf8").split("\n").slice(1, -1);
    const metrics = lines.map((line) => JSON.parse(line) as MetricsLine);
    return {
      final: last.final,
      weights: model.bytes(),
      steps: model.steps,
      kept: readRunRecord(folder).durable.map((c) => [c.step, c.sampler !== undefined]),
      metrics: metrics.map(({ step, loss, heldOutLoss }) => ({ step, loss, heldOutLoss })),
      onServer: server.checkpoints.size,
      models: server.models.size,
    };
  } finally {
    await server.stop();
  }
}

let points: readonly string[] = [];
const { onServer, models, ...whole } = await withRun(async (go) => {
  const result = await go();
  points = result.points;
  expect(result.end).toEqual({ status: "complete", step: 11 });
});

/** At least one of every kind of point, the rest spread evenly. */
function killPoints(count: number): number[] {
  const firsts = [...new Set(points)].map((name) => points.lastIndexOf(name) + 1);
  const spread = Array.from({ length: Math.max(0, count - firsts.length) }, (_, i) =>
    Math.ceil(((i + 0.5) * points.length) / (count - firsts.length)),
  );
  return [...new Set([...firsts, ...spread])].sort((a, b) => a - b);
}

test("the uninterrupted run is what it should be", () => {
  expect(whole.steps).toBe(11);
  expect(whole.final).toEqual({ steps: 11 });
  expect(models).toBe(0);
  expect(onServer).toBeGreaterThanOrEqual(2);
  expect(new Set(points).size).toBeGreaterThan(15);
});

test.concurrent.each(killPoints(20).map((at) => [at, points[at - 1]] as const))(
  "killed at point %i (%s)",
  async (at) => {
    const {
      onServer: _,
      models: __,
      ...ended
    } = await withRun(async (go, server) => {
      expect((await go({ at })).killed).toBe(true);
      if (at % 2 === 0) server.forget();
      expect((await go()).end).toEqual({ status: "complete", step: 11 });
    });
    expect(ended).toEqual(whole);
  },
);

test.concurrent.each([
  ["eval:journaled", { eval_every: 0 }],
  ["save:journaled", { save_every: 0 }],
  ["save:weights-sent", { save_every: 100 }],
  ["step:journaled", { eval_every: 1, save_every: 1 }],
  ["step:sent", { eval_every: 2, save_every: 5 }],
])("killed at %s, then ordered to look and save otherwise: no number is left out", async (point, change) => {
  const at = points.indexOf(point) + 1;
  const { weights, steps } = await withRun(async (go, _, folder) => {
    expect((await go({ at })).killed).toBe(true);
    const spec = join(folder, "spec.json");
    writeFileSync(spec, JSON.stringify({ ...(JSON.parse(readFileSync(spec, "utf8")) as object), ...change }));
    expect((await go()).end).toEqual({ status: "complete", step: 11 });
  });
  expect({ weights, steps }).toEqual({ weights: whole.weights, steps: whole.steps });
});

test.skipIf(!process.env.RLCLI_TEST_ALL)(
  "killed at random, again and again, 200 times",
  { timeout: 1_800_000 },
  async () => {
    for (let kills = 0; kills < 200; ) {
      const {
        onServer: _,
        models: __,
        ...ended
      } = await withRun(async (go, server) => {
        for (;;) {
          const kill =
            Math.random() < 0.5 ? { afterMs: 150 + Math.random() * 400 } : { at: 1 + Math.floor(Math.random() * 40) };
          const result = await go(kill);
          if (!result.killed) {
            expect(result.end).toEqual({ status: "complete", step: 11 });
            break;
          }
          kills += 1;
          if (Math.random() < 0.4) server.forget();
        }
      });
      expect(ended).toEqual(whole);
    }
  },
);
