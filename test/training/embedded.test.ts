/**
 * The loop on the real embedded server: training learns, and a run whose worker or server is killed ends with the very
 * bytes of one that ran through. Named points here; `test:all` kills 200 times at random, server included.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { digestBytes } from "../../src/digest.ts";
import { signalProcess } from "../../src/process.ts";
import type { MetricsLine } from "../../src/run-record.ts";
import { checkpointFolder, parseCheckpointPath } from "../../src/servers/checkpoints.ts";
import { ensureEmbedded } from "../../src/servers/embedded/ensure.ts";
import { readRuntime, stopServer } from "../../src/servers/runtime.ts";
import { readRunRecord } from "../../src/training/progress.ts";
import { bundleChild, runChild } from "./crash.ts";
import { makeOrder } from "./order.ts";

const base = mkdtempSync(join(tmpdir(), "rlcli-embedded-"));
const serverFolder = join(base, "server");
let bundle: string;

const ensure = () => ensureEmbedded({ folder: serverFolder, model: "builtin:tiny", cacheFolder: join(base, "cache") });

const rows = Array.from({ length: 12 }, (_, i) =>
  JSON.stringify({
    messages: [
      { role: "user", content: `Say ${i}` },
      { role: "assistant", content: `It is ${i}.` },
    ],
  }),
);

beforeAll(async () => {
  bundle = await bundleChild();
  await ensure();
}, 300_000);
afterAll(async () => {
  await stopServer(serverFolder, { force: true, timeoutMs: 60_000 });
  rmSync(base, { recursive: true, force: true });
});

const makeRun = () =>
  makeOrder({
    rows,
    model: "builtin:tiny",
    length: { steps: 5 },
    save_every: 2,
    eval_every: 3,
    settings: { learning_rate: 0.003, test_size: 2, max_length: 64, optimizer: { grad_clip_norm: 1 } },
  });

/** Digests of what the final checkpoint holds. */
function finalDigests(folder: string): Record<string, string> {
  const { durable } = readRunRecord(folder);
  const { training, sampler } = durable.at(-1)!;
  const digest = (path: string, file: string) =>
    digestBytes(readFileSync(join(checkpointFolder(serverFolder, parseCheckpointPath(path)!), file)));
  return {
    model: digest(training, "model.safetensors"),
    optimizer: digest(training, "optimizer.safetensors"),
    sampler: digest(sampler!, "model.safetensors"),
  };
}

const losses = (folder: string) =>
  readFileSync(join(folder, "metrics.jsonl"), "utf8")
    .split("\n")
    .slice(1, -1)
    .map((line) => JSON.parse(line) as MetricsLine)
    .map(({ step, loss, heldOutLoss, gradNorm }) => ({ step, loss, heldOutLoss, gradNorm }));

async function go(folder: string, killAt?: number, killAfterMs?: number) {
  const { url, token, serverRun, modelFolder } = await ensure();
  const connection = { url, token, serverRun };
  return runChild(
    bundle,
    { folder, connection, modelFolder, ...(killAt === undefined ? {} : { killAt }) },
    killAfterMs,
  );
}

async function killServer(): Promise<void> {
  const found = readRuntime(serverFolder);
  if (found.state !== "running") return;
  signalProcess(found.runtime.process, "SIGKILL");
  await expect.poll(() => readRuntime(serverFolder).state, { timeout: 60_000 }).toBe("died");
}

let whole: { digests: Record<string, string>; losses: ReturnType<typeof losses>; points: readonly string[] };

test("trains builtin:tiny", { timeout: 180_000 }, async () => {
  const { folder } = makeRun();
  const { end, points } = await go(folder);
  expect(end).toEqual({ status: "complete", step: 5 });
  whole = { digests: finalDigests(folder), losses: losses(folder), points };
  expect(whole.losses.at(-1)!.loss).toBeLessThan(whole.losses[0]!.loss * 0.8);
  expect(whole.losses.filter((l) => l.heldOutLoss !== undefined).map((l) => l.step)).toEqual([3, 5]);
});

/** Every kind of point that matters once the model lives; the last of its name, so that much can be lost. */
const POINTS: readonly (readonly [point: string, withServer: boolean])[] = [
  ["open:created", false],
  ["open:journaled", true],
  ["step:begin", false],
  ["step:journaled", false],
  ["step:journaled", true],
  ["step:pass-sent", false],
  ["step:pass-sent", true],
  ["step:sent", false],
  ["step:sent", true],
  ["step:results", false],
  ["step:metrics", false],
  ["step:done", true],
  ["eval:journaled", false],
  ["eval:sent", false],
  ["save:journaled", false],
  ["save:weights-sent", false],
  ["save:weights-sent", true],
  ["save:weights-done", false],
  ["save:sampler_weights-done", true],
  ["save:listed", false],
  ["prune:deleted", false],
  ["end:journaled", true],
];

test.each(POINTS)("killed at %s; server killed too: %j", { timeout: 180_000 }, async (point, withServer) => {
  const { folder } = makeRun();
  expect((await go(folder, whole.points.lastIndexOf(point) + 1)).killed).toBe(true);
  if (withServer) await killServer();
  expect((await go(folder)).end).toEqual({ status: "complete", step: 5 });
  expect(losses(folder)).toEqual(whole.losses);
  expect(finalDigests(folder)).toEqual(whole.digests);
});

test.skipIf(!process.env.RLCLI_TEST_ALL)("200 random kills", { timeout: 3_600_000 }, async () => {
  for (let kills = 0; kills < 200; ) {
    const { folder } = makeRun();
    for (;;) {
      const result = await (Math.random() < 0.5
        ? go(folder, 1 + Math.floor(Math.random() * 40))
        : go(folder, undefined, 300 + Math.random() * 3000));
      if (!result.killed) break;
      kills += 1;
      if (Math.random() < 0.3) await killServer();
    }
    expect(losses(folder)).toEqual(whole.losses);
    expect(finalDigests(folder)).toEqual(whole.digests);
  }
});
