// The loop's pure parts: schedule, weights and loss, checkpoints to keep, what the journal means.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { JournalEntry, Schedule } from "../../src/run-record.ts";
import { batchLoss, buildBatch } from "../../src/training/batch.ts";
import { bestCheckpoint, prunable } from "../../src/training/checkpoints.ts";
import { EMPTY_JOURNAL, fold } from "../../src/training/journal.ts";
import { scheduleFactor } from "../../src/training/schedule.ts";

describe("schedule", () => {
  const rates = (schedule: Partial<Schedule>, horizon: number | undefined, steps: number[]) =>
    steps.map((step) => {
      const whole = { type: "constant", warmup_steps: 0, final_ratio: 0, ...schedule } as const;
      return Number(scheduleFactor(whole, step, horizon).toFixed(6));
    });
  test.each([
    ["constant", {}, undefined, [1, 1, 1], [1, 2, 100]],
    ["warm-up", { warmup_steps: 4 }, undefined, [0.25, 0.5, 1, 1], [1, 2, 4, 5]],
    ["linear", { type: "linear" }, 4, [1, 0.75, 0.5, 0.25, 0, 0], [1, 2, 3, 4, 5, 9]],
    ["linear with a floor", { type: "linear", final_ratio: 0.5 }, 4, [1, 0.625, 0.5], [1, 4, 9]],
    ["cosine", { type: "cosine" }, 4, [1, 0.5, 0, 0], [1, 3, 5, 9]],
    ["cosine after warm-up", { type: "cosine", warmup_steps: 2 }, 6, [0.5, 1, 1, 0.5, 0], [1, 2, 3, 5, 7]],
  ] as const)("%s", (_, schedule, horizon, expected, steps) => {
    expect(rates(schedule, horizon, [...steps])).toEqual(expected);
  });
});

describe("a batch", () => {
  const datum = (weights: number[]) => ({
    tokens: Int32Array.from({ length: weights.length }, (_, i) => i + 10),
    weights: Float32Array.from(weights),
  });
  const datums = [datum([0, 0, 1, 1]), datum([0, 1, 0.5])];
  test("is shifted: position i predicts token i + 1", () => {
    const { data, tokens, trainedTokens } = buildBatch(datums, "token");
    expect([...data[0]!.input]).toEqual([10, 11, 12]);
    expect([...data[0]!.lossInputs.target_tokens!]).toEqual([11, 12, 13]);
    expect({ tokens, trainedTokens }).toEqual({ tokens: 5, trainedTokens: 4 });
  });
  test("token: weights add up to 1 over the batch; sequence: to 1/n in each datum", () => {
    const sums = (normalize: "token" | "sequence") =>
      buildBatch(datums, normalize).data.map((d) => (d.lossInputs.weights as Float32Array).reduce((a, b) => a + b, 0));
    expect(sums("token").reduce((a, b) => a + b)).toBeCloseTo(1, 6);
    expect(sums("token")[0]! / sums("token")[1]!).toBeCloseTo(2 / 1.5, 6);
    for (const sum of sums("sequence")) expect(sum).toBeCloseTo(0.5, 6);
  });
  test("its loss is the weighted mean of what came back, and ignores untrained positions", () => {
    const logprobs = (...values: number[]) => ({ logprobs: Float32Array.from(values) });
    const result = { metrics: {}, outputs: [logprobs(Number.NaN, -1, -3), logprobs(-2, -4)] };
    const token = buildBatch(datums, "token").data;
    expect(batchLoss(token, [result])).toBeCloseTo((1 + 3 + 2 + 0.5 * 4) / 3.5, 5);
    const sequence = buildBatch(datums, "sequence").data;
    expect(batchLoss(sequence, [result])).toBeCloseTo(((1 + 3) / 2 + (2 + 2) / 1.5) / 2, 5);
    expect(batchLoss(token, [{ metrics: {}, outputs: result.outputs.slice(0, 1) }])).toBeNaN();
  });
  test("its digest tells tokens and weights apart", () => {
    const digest = (d: typeof datums) => buildBatch(d, "token").digest;
    expect(digest(datums)).toBe(digest([...datums]));
    expect(digest(datums)).not.toBe(digest([...datums].reverse()));
    expect(digest([datum([0, 1, 1])])).not.toBe(digest([datum([0, 1, 0])]));
  });
});

describe("checkpoints", () => {
  const c = (step: number, more: object = {}) => ({ step, training: `t${step}`, ...more });
  test("the last ones, the final ones and the best stay", () => {
    const list = [c(1), c(2, { heldOutLoss: 1 }), c(3, { heldOutLoss: 2 }), c(4, { final: { steps: 4 } }), c(5), c(6)];
    expect(prunable(list, 1).map((x) => x.step)).toEqual([1, 3, 5]);
    expect(prunable(list, 2).map((x) => x.step)).toEqual([1, 3]);
    expect(prunable(list, 0).map((x) => x.step)).toEqual([1, 3, 5]);
    expect(prunable([], 1)).toEqual([]);
    expect(bestCheckpoint(list)?.step).toBe(2);
    expect(bestCheckpoint([c(1)])).toBeUndefined();
  });
});

describe("the journal", () => {
  const at = "2026-11-30T00:00:00Z";
  const open = (step: number, loaded?: string): JournalEntry => ({
    t: "open",
    at,
    session: "s",
    model: "m",
    serverRun: "r",
    step,
    ...(loaded ? { loaded } : {}),
  });
  const step = (n: number, ...seq: number[]): JournalEntry => ({
    t: "step",
    at,
    step: n,
    seq,
    batch: "sha256:0",
    learningRate: 1,
  });
  const done = (n: number): JournalEntry => ({ t: "done", at, step: n });
  const state = (...entries: JournalEntry[]) => entries.reduce(fold, EMPTY_JOURNAL);
  test("knows what is done, what may be, and which numbers are used", () => {
    const s = state(open(0), step(1, 1, 2), step(2, 3, 4), done(1));
    expect(s).toMatchObject({ done: 1, nextSeq: 5, isFresh: false });
    expect(s.pending.map((p) => p.step)).toEqual([2]);
    expect(state(open(5, "tinker://x"))).toMatchObject({ done: 5, nextSeq: 2, isFresh: true });
    expect(state(open(0), { t: "eval", at, step: 1, seq: [7, 8] }).nextSeq).toBe(9);
  });
  test("a save is open until it is saved; a rollback and an end close the lineage", () => {
    const save: JournalEntry = { t: "save", at, step: 1, name: "n", seq: [3] };
    expect(state(open(0), step(1, 1, 2), done(1), save)).toMatchObject({ save, saveModel: "m", nextSeq: 4 });
    expect(state(open(0), save, { t: "saved", at, step: 1 }).save).toBeUndefined();
    const rolled = state(open(0), step(1, 1, 2), done(1), { t: "rollback", at, from: 1, to: 0, reason: "x" });
    expect(rolled).toMatchObject({ done: 0, open: undefined, pending: [], save: undefined });
    const ended = state(open(0), step(1, 1, 2), done(1), { t: "end", at, status: "interrupted", step: 1 });
    expect(ended).toMatchObject({ done: 1, open: undefined, end: { status: "interrupted" } });
    expect(fold(fold(ended, open(1)), step(2, 2, 3)).end).toBeUndefined();
  });
  test("whatever is written, done never runs ahead of what was begun", () => {
    const entries = fc.array(fc.integer({ min: 1, max: 9 }), { maxLength: 30 });
    fc.assert(
      fc.property(entries, (cuts) => {
        let s = state(open(0));
        let begun = 0;
        for (const cut of cuts) {
          if (cut > 4) {
            begun += 1;
            s = fold(s, step(begun, s.nextSeq, s.nextSeq + 1));
          } else if (s.pending[0]) s = fold(s, done(s.pending[0].step));
          expect(s.pending.map((p) => p.step)).toEqual(
            Array.from({ length: begun - s.done }, (_, i) => s.done + i + 1),
          );
        }
      }),
    );
  });
});
