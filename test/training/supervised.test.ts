// The loop against the fake server, in one process: what is trained, saved, pruned, measured; how it stops, fails and
// goes on. Kills are in crash.test.ts.
import { appendFileSync, chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { MetricsLine, RunEvent, RunOrder } from "../../src/run-record.ts";
import { readRunRecord } from "../../src/training/progress.ts";
import { runTraining, type TrainingDeps } from "../../src/training/training.ts";
import { FakeServer, type Fault, faultsOn, type SeenRequest } from "../tinker/fake-server.ts";
import { makeDeps, makeOrder, rowOf } from "./order.ts";

let server: FakeServer;
beforeEach(async () => {
  server = await new FakeServer().start();
});
afterEach(() => server.stop());

const lines = <T>(folder: string, file: string): T[] =>
  readFileSync(join(folder, file), "utf8")
    .split("\n")
    .filter((l) => l !== "")
    .map((l) => JSON.parse(l) as T)
    .slice(1);
const metrics = (folder: string) => lines<MetricsLine>(folder, "metrics.jsonl");
const run = (order: RunOrder, folder: string, more: Partial<TrainingDeps> = {}) =>
  runTraining(order, makeDeps(server, folder, more));
const final = (folder: string) => {
  const last = readRunRecord(folder).durable.at(-1)!;
  return { ...last, weights: server.checkpoints.get(last.training)!.model };
};

test("trains to the end: loss falls, the final checkpoint is kept both ways, rolling ones go", async () => {
  const { order, folder } = makeOrder({ settings: { test_size: 3 }, eval_every: 4 });
  expect(await run(order, folder)).toEqual({ status: "complete", step: 12 });
  const m = metrics(folder);
  for (const { values } of m) expect(values!["memory/client"]).toBeGreaterThan(1e7);
  expect(m.map((x) => x.step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  expect(m.at(-1)!.loss).toBeLessThan(m[0]!.loss * 0.9);
  expect(m.filter((x) => x.heldOutLoss !== undefined).map((x) => x.step)).toEqual([4, 8, 12]);
  expect(m[0]!.epoch).toBe(0.2);
  expect(m[4]!).toMatchObject({ epoch: 1, rows: 3 });
  const progress = readRunRecord(folder);
  expect(progress).toMatchObject({ step: 12, end: { status: "complete" }, workerAlive: false, diagnostics: [] });
  expect(progress.durable.map((c) => [c.step, c.final, c.sampler !== undefined])).toEqual([[12, { steps: 12 }, true]]);
  expect([...server.checkpoints.keys()].sort()).toEqual(
    [progress.durable[0]!.sampler!, progress.durable[0]!.training].sort(),
  );
  expect(final(folder).weights.steps).toBe(12);
  expect(server.models.size).toBe(0);
  const requests = server.requests.length;
  expect(await run(order, folder)).toEqual({ status: "complete", step: 12 });
  expect(server.requests).toHaveLength(requests);
});

test("the same order gives the same weights, another seed others", async () => {
  const weights = async (seed: number) => {
    const { order, folder } = makeOrder({ settings: { seed } });
    await run(order, folder);
    return final(folder).weights.bytes();
  };
  const first = await weights(1);
  expect(await weights(1)).toBe(first);
  expect(await weights(2)).not.toBe(first);
});

test("stopped while it waits for its server it ends at once, and goes on later", async () => {
  const { order, folder } = makeOrder();
  const stop = new AbortController();
  const connect = () =>
    new Promise<never>((_, reject) => {
      stop.signal.addEventListener("abort", () => reject(stop.signal.reason));
      stop.abort();
    });
  const end = await run(order, folder, { stop: stop.signal, connect });
  expect(end).toEqual({ status: "interrupted", step: 0 });
  expect(await run(order, folder)).toEqual({ status: "complete", step: 12 });
  // Nothing but what is left over was to be done: the run is complete all the same.
  expect(await run(order, folder, { stop: stop.signal, connect })).toEqual({ status: "complete", step: 12 });
});

test("stopped and started again, it ends as if it had not been", async () => {
  const whole = makeOrder();
  await run(whole.order, whole.folder);
  const { order, folder } = makeOrder();
  const stop = new AbortController();
  let sent = 0;
  const at = (point: string) => void (point === "step:sent" && ++sent === 7 && stop.abort());
  const end = await run(order, folder, { stop: stop.signal, at });
  expect(end).toEqual({ status: "interrupted", step: 7 });
  expect(readRunRecord(folder)).toMatchObject({ step: 7, end, durable: [{ step: 7 }] });
  server.forget();
  expect(await run(order, folder)).toEqual({ status: "complete", step: 12 });
  expect(final(folder).weights.bytes()).toBe(final(whole.folder).weights.bytes());
});

test("more steps extend, also after the server was replaced; earlier finals stay", async () => {
  const whole = makeOrder({ length: { steps: 20 } });
  await run(whole.order, whole.folder);
  const { order, folder } = makeOrder();
  await run(order, folder);
  server.forget();
  expect(await run({ ...order, length: { steps: 20 } }, folder)).toEqual({ status: "complete", step: 20 });
  expect(final(folder).weights.bytes()).toBe(final(whole.folder).weights.bytes());
  expect(readRunRecord(folder).durable.map((c) => c.step)).toEqual([12, 20]);
});

test("fewer steps go back to a kept checkpoint and make it final", async () => {
  const { order, folder } = makeOrder({ keep_last: 9 });
  await run(order, folder);
  expect(await run({ ...order, length: { steps: 5 } }, folder)).toEqual({ status: "complete", step: 5 });
  expect(readRunRecord(folder).durable[0]).toMatchObject({ step: 5, final: { steps: 5 }, sampler: expect.any(String) });
  expect(metrics(folder).map((m) => m.step)).toEqual([1, 2, 3, 4, 5]);
});

test("a shortened run keeps what it goes back to, and what lies beyond", async () => {
  const { order, folder } = makeOrder();
  await run(order, folder);
  expect(readRunRecord(folder).durable.map((c) => c.step)).toEqual([12]);
  const long = makeOrder({ keep_last: 2 });
  await run(long.order, long.folder);
  expect(readRunRecord(long.folder).durable.map((c) => c.step)).toEqual([10, 12]);
  expect(await run({ ...long.order, keep_last: 1, length: { steps: 11 } }, long.folder)).toMatchObject({ step: 11 });
  expect(readRunRecord(long.folder).durable.map((c) => c.step)).toEqual([11, 12]);
  expect(
    lines<{ loaded?: string }>(long.folder, "journal.jsonl").filter((e) => e.loaded?.endsWith("-10")),
  ).toHaveLength(1);
});

test("starts from another run's checkpoint, with or without its optimizer", async () => {
  const parent = makeOrder({ length: { steps: 5 } });
  await run(parent.order, parent.folder);
  const checkpoint = {
    run: "run.agent",
    generation: parent.order.generation,
    incarnation: 1,
    at: { steps: 5 },
  } as const;
  for (const optimizer of [true, false]) {
    const from = { checkpoint, path: final(parent.folder).training, optimizer };
    const { order, folder } = makeOrder({ length: { steps: 2 }, from });
    expect(await run(order, folder)).toMatchObject({ status: "complete" });
    expect(final(folder).weights.steps).toBe(optimizer ? 7 : 2);
  }
});

test("the best checkpoint by held-out loss is kept with sampler weights", async () => {
  const settings = {
    test_size: 3,
    learning_rate: 0.3,
    schedule: { type: "linear", warmup_steps: 0, final_ratio: 40, horizon: { steps: 12 } },
  } as const;
  const { order, folder } = makeOrder({ settings, save_every: 2, eval_every: 2 });
  await run(order, folder);
  const { durable } = readRunRecord(folder);
  const losses = metrics(folder).filter((m) => m.heldOutLoss !== undefined);
  const best = losses.reduce((a, b) => (b.heldOutLoss! < a.heldOutLoss! ? b : a));
  expect(best.step).toBeLessThan(12);
  expect(durable.map((c) => c.step)).toEqual([best.step, 12]);
  expect(durable[0]).toMatchObject({ heldOutLoss: best.heldOutLoss, sampler: expect.any(String) });
});

describe("trouble", () => {
  test("a server that loses its model mid-way: back to the last checkpoint, and on", async () => {
    const whole = makeOrder();
    await run(whole.order, whole.folder);
    const { order, folder } = makeOrder();
    let sent = 0;
    const at = (point: string) => void (point === "step:sent" && ++sent === 8 && server.forget());
    expect(await run(order, folder, { at })).toEqual({ status: "complete", step: 12 });
    expect(final(folder).weights.bytes()).toBe(final(whole.folder).weights.bytes());
    expect(metrics(folder).map((m) => m.step)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
    expect(lines<{ t: string }>(folder, "journal.jsonl").filter((e) => e.t === "rollback")).toHaveLength(1);
  });
  test("a server that restarted with another key is connected to anew; a wrong key fails soon", async () => {
    const { order, folder } = makeOrder();
    let key = "tml-1";
    let refused = 0;
    server.fault = (r) =>
      r.headers["x-api-key"] === key ? undefined : { type: "answer", status: 401, body: { detail: `no ${++refused}` } };
    let sent = 0;
    const at = (point: string) => {
      if (point !== "step:sent" || ++sent !== 3) return;
      key = "tml-2";
      server.forget();
    };
    const connect = async () => ({ url: server.url, token: key, serverRun: server.life });
    expect(await run(order, folder, { at, connect })).toEqual({ status: "complete", step: 12 });
    expect(refused).toBe(1);
    const stale = async () => ({ url: server.url, token: "tml-old", serverRun: "x" });
    const other = makeOrder();
    expect(await run(other.order, other.folder, { connect: stale })).toMatchObject({
      status: "failed",
      diagnostics: [{ code: "RL8008" }],
    });
  });
  test("429, 500, dropped connections and slow results change nothing", async () => {
    const whole = makeOrder({ length: { steps: 4 } });
    await run(whole.order, whole.folder);
    let n = 0;
    server.slowPolls = 1;
    server.fault = () => {
      n += 1;
      if (n % 7 === 0) return { type: "answer", status: 429, headers: { "retry-after-ms": "1" } };
      if (n % 11 === 0) return { type: "answer", status: 500, headers: { "retry-after-ms": "1" } };
      return n % 13 === 0 ? { type: "drop", when: "after" } : undefined;
    };
    const { order, folder } = makeOrder({ length: { steps: 4 } });
    expect(await run(order, folder)).toEqual({ status: "complete", step: 4 });
    expect(final(folder).weights.bytes()).toBe(final(whole.folder).weights.bytes());
  });
  test("a refused request ends the run with the server's words", async () => {
    const { order, folder } = makeOrder();
    server.fault = faultsOn("/create_model", { type: "answer", status: 400, body: { detail: "no such model" } });
    expect(await run(order, folder)).toMatchObject({
      status: "failed",
      diagnostics: [{ code: "RL8008", detail: expect.stringContaining("no such model") }],
    });
    expect(readRunRecord(folder).end).toMatchObject({ status: "failed" });
    expect(await run(order, folder)).toMatchObject({ status: "complete" });
  });
  test("a server that never answers is given up", async () => {
    const { order, folder } = makeOrder();
    server.fault = (r) =>
      r.path === "/create_session"
        ? { type: "answer", status: 429, headers: { "retry-after-ms": "50000" } }
        : undefined;
    expect(await run(order, folder, { giveUpAfterMs: 1 })).toMatchObject({
      status: "failed",
      diagnostics: [{ code: "RL8008" }],
    });
  });
  test("a loss that is not a number stops the run; its checkpoints stay", async () => {
    const { order, folder } = makeOrder();
    let polls = 0;
    server.fault = (r) => {
      const result = r.path === "/retrieve_future" ? (server.futures.get(r.body.request_id) as any) : undefined;
      if (result?.loss_fn_outputs && ++polls === 8) {
        const broken = result.loss_fn_outputs.map((o: any) => ({
          logprobs: { ...o.logprobs, data: o.logprobs.data.map(() => null) },
        }));
        return { type: "answer", status: 200, body: { ...result, loss_fn_outputs: broken } };
      }
      return undefined;
    };
    const end = await run(order, folder);
    expect(end).toMatchObject({ status: "failed", step: 7, diagnostics: [{ code: "RL8004", address: "run.agent" }] });
    expect(readRunRecord(folder).durable.map((c) => c.step)).toEqual([5]);
  });
  test("a checkpoint that is gone is named", async () => {
    const { order, folder } = makeOrder({ length: { steps: 5 } });
    await run(order, folder);
    server.checkpoints.clear();
    expect(await run({ ...order, length: { steps: 9 } }, folder)).toMatchObject({
      status: "failed",
      diagnostics: [{ code: "RL8005" }],
    });
  });
});

test("a loss that is not for supervised runs is refused", async () => {
  const { order, folder } = makeOrder({ settings: { loss: { type: "ppo", options: {} } } });
  expect(await run(order, folder)).toMatchObject({ status: "failed", diagnostics: [{ code: "RL8010" }] });
});

describe("rows", () => {
  test("those that train nothing are counted; all of them is an error", async () => {
    const mute = JSON.stringify({
      messages: [
        { role: "user", content: "q" },
        { role: "assistant", content: "a", weight: 0 },
      ],
    });
    const { order, folder } = makeOrder({ rows: [rowOf(1), mute, rowOf(2)], length: { epochs: 2 } });
    expect(await run(order, folder)).toEqual({ status: "complete", step: 2 });
    const warnings = lines<RunEvent>(folder, "events.jsonl").filter((e) => e.t === "warning");
    expect(warnings).toMatchObject([
      { diagnostic: { code: "RL8003", detail: expect.stringContaining("Of 3 rows: 1 train no token") } },
    ]);
    for (const rows of [[mute], []]) {
      const none = makeOrder({ rows });
      expect(await run(none.order, none.folder)).toMatchObject({ status: "failed", diagnostics: [{ code: "RL8001" }] });
    }
    const held = makeOrder({ rows: [rowOf(1)], settings: { test_size: 1 } });
    expect(await run(held.order, held.folder)).toMatchObject({
      diagnostics: [{ code: "RL8001", detail: expect.stringContaining("held out") }],
    });
  });
  test("a missing or damaged file is a diagnostic with its line", async () => {
    const { order, folder } = makeOrder({ rows: [rowOf(1), "{"] });
    expect(await run(order, folder)).toMatchObject({
      diagnostics: [{ code: "RL8002", detail: expect.stringContaining("rows.jsonl:2") }],
    });
    const gone = { ...order, dataset: { ...order.dataset, path: "/nonexistent" } };
    expect(await run(gone, folder)).toMatchObject({ diagnostics: [{ code: "RL8002" }] });
  });
  test("rows that changed under a begun step are refused", async () => {
    const { order, folder } = makeOrder();
    const stop = new AbortController();
    const dies = run(order, folder, {
      at: (point) => {
        if (point === "step:sent") throw new Error("crash");
      },
      stop: stop.signal,
    });
    await expect(dies).rejects.toThrow("crash");
    writeFileSync(order.dataset.path, readFileSync(order.dataset.path, "utf8").replaceAll("answer", "anders"));
    expect(await run(order, folder)).toMatchObject({ status: "failed", diagnostics: [{ code: "RL8007" }] });
  });
});

describe("a damaged record", () => {
  test.each(["journal.jsonl", "checkpoints.jsonl"])(
    "%s: a torn tail is recovered, a bad line is a diagnostic",
    async (file) => {
      const { order, folder } = makeOrder({ length: { steps: 5 } });
      await run(order, folder);
      appendFileSync(join(folder, file), '{"t":"ste');
      expect(readRunRecord(folder)).toMatchObject({ step: 5, diagnostics: [] });
      expect(await run({ ...order, length: { steps: 6 } }, folder)).toEqual({ status: "complete", step: 6 });
      appendFileSync(join(folder, file), 'garbage\n{"t":"done","step":6}\n');
      expect(readRunRecord(folder).diagnostics[0]).toMatchObject({
        code: "RL3007",
        detail: expect.stringContaining(file),
      });
      expect(await run(order, folder)).toMatchObject({
        status: "failed",
        diagnostics: expect.arrayContaining([expect.objectContaining({ code: "RL3007" })]),
      });
    },
  );
  test("a missing record is an empty one", () => {
    expect(readRunRecord("/nonexistent")).toEqual({ step: 0, durable: [], workerAlive: false, diagnostics: [] });
  });
  test.skipIf(process.getuid?.() === 0)("a folder that cannot be written is a diagnostic", async () => {
    const { order, folder } = makeOrder();
    chmodSync(folder, 0o500);
    expect(await run(order, folder)).toMatchObject({ status: "failed", diagnostics: [{ code: "RL8009" }] });
  });
});

describe("another kind of server", () => {
  const trainOn = async (more: Partial<FakeServer>, settings: Partial<RunOrder["settings"]>) => {
    await server.stop();
    server = Object.assign(await new FakeServer().start(), more);
    const { order, folder } = makeOrder({ settings: { ...settings, test_size: 3 } as object, eval_every: 4 });
    const end = await run(order, folder);
    return { end, weights: () => [...final(folder).weights.weights], losses: metrics(folder).map((m) => m.loss) };
  };
  const jax = { skyrl: "jax", reduction: "mean of means" } as const;

  test.each(["token", "sequence"] as const)("jax trains the same run, normalized by %s", async (normalize) => {
    const embedded = await trainOn({ isEmbedded: true }, { normalize });
    const there = embedded.weights();
    const other = await trainOn(jax, { normalize });
    expect(other.end).toEqual({ status: "complete", step: 12 });
    other.losses.forEach((loss, i) => {
      expect(loss).toBeCloseTo(embedded.losses[i]!, 4);
    });
    other.weights().forEach((w, i) => {
      expect(Math.abs(w - there[i]!)).toBeLessThan(2e-3);
    });
    // Whatever is left of gradients would go over to the next model.
    expect(server.requests.filter((r) => r.path === "/optim_step").at(-1)!.body.adam_params.learning_rate).toBe(0);
    const losses = server.requests.flatMap((r) => r.body.forward_backward_input?.loss_fn ?? []);
    expect(new Set(losses)).toEqual(new Set([normalize === "token" ? "importance_sampling" : "cross_entropy"]));
  });

  test("work that failed with another's batch is done again, from the last checkpoint; its own fault is told soon", async () => {
    const reason = { detail: "index 900 is out of bounds for axis 0" };
    let polls = 0;
    let isBroken = (n: number): boolean => n === 9;
    const fault = (r: SeenRequest): Fault | undefined => {
      const isPoll = r.path === "/retrieve_future" && String(r.headers.accept).includes("protobuf");
      return isPoll && isBroken(++polls) ? { type: "answer", status: 400, body: reason } : undefined;
    };
    const whole = await trainOn(jax, { normalize: "sequence" });
    const weights = whole.weights();
    const again = await trainOn({ ...jax, fault }, { normalize: "sequence" });
    expect(again.end).toEqual({ status: "complete", step: 12 });
    again.weights().forEach((w, i) => {
      expect(Math.abs(w - weights[i]!)).toBeLessThan(1e-6);
    });
    expect(server.count("/create_model")).toBe(2);
    isBroken = () => true;
    const broken = await trainOn({ ...jax, fault }, { normalize: "sequence" });
    expect(broken.end).toMatchObject({ status: "failed", diagnostics: [{ code: "RL8008" }] });
    expect(server.count("/create_model")).toBeLessThan(3);
  });

  test("a setting that it does not use ends the run before it begins", async () => {
    const { end } = await trainOn(jax, { optimizer: { grad_clip_norm: 1 } });
    expect(end).toMatchObject({ status: "failed", step: 0, diagnostics: [{ code: "RL8011" }] });
    expect(server.count("/optim_step")).toBe(0);
  });
});
