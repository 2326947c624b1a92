/** A run's timeline from its record: overlapping steps, a cut, a rollback, and lines that are damaged. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { runTimeline } from "../../src/training/timeline.ts";

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString();

test("steps that overlap have tracks of their own; what a crash cut off says so", () => {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-timeline-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const write = (name: string, lines: readonly object[], tail = "") =>
    writeFileSync(
      join(folder, name),
      [{ formatVersion: 1 }, ...lines].map((line) => `${JSON.stringify(line)}\n`).join("") + tail,
    );
  write(
    "journal.jsonl",
    [
      { t: "open", at: at(0), session: "s", model: "m", serverRun: "r", step: 0 },
      { t: "step", at: at(1), step: 1, seq: [1], batch: "b", learningRate: 1 },
      { t: "step", at: at(2), step: 2, seq: [2], batch: "b", learningRate: 1 },
      { t: "done", at: at(3), step: 1 },
      { t: "rollback", at: at(4), from: 2, to: 1, reason: "the server restarted" },
      { t: "open", at: at(5), session: "s", model: "m2", serverRun: "r2", step: 1, loaded: "p" },
      { t: "sampler", at: at(6), step: 2, seq: [1] },
      { t: "part", at: at(7), step: 2, part: 0, seq: [2], batch: "b" },
      { t: "done", at: at(8), step: 2 },
      { t: "save", at: at(8), step: 2, name: "x", seq: [3] },
      { t: "saved", at: at(9), step: 2 },
    ],
    '{"t":"sav',
  );
  write("metrics.jsonl", [
    { step: 1, at: at(3), loss: 2, tokensPerSecond: 10, tokens: 5, values: { "reward/mean": 0.5 } },
  ]);
  write("events.jsonl", []);
  const { traceEvents } = runTimeline(folder, "run.agent");
  const tracks = new Map(
    traceEvents.filter(({ name }) => name === "thread_name").map(({ tid, args }) => [tid, args!.name]),
  );
  const spans = traceEvents
    .filter(({ ph }) => ph === "X")
    .map(({ name, tid, ts, dur }) => [tracks.get(tid), name, (ts! - Date.UTC(2026, 0, 1) * 1000) / 1e6, dur! / 1e6]);
  expect(spans).toEqual([
    ["steps", "step 1", 1, 2],
    ["steps (2)", "step 2 (cut off)", 2, 1],
    ["steps", "step 2", 6, 2],
    ["saves", "step 2", 8, 1],
  ]);
  expect(traceEvents.filter(({ ph }) => ph === "C").map(({ name, args }) => [name, args!.value])).toEqual([
    ["loss", 2],
    ["tokens/s", 10],
    ["reward", 0.5],
  ]);
  expect(traceEvents.filter(({ ph }) => ph === "i").map(({ name }) => name)).toEqual([
    "model of step 0",
    "back to step 1",
    "model of step 1",
  ]);
});
