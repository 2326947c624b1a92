/** What reinforcement learning shows on a terminal: curves, answers, results of evals, differences of a regrade. */
import { describe, expect, test } from "vitest";
import { renderEval } from "../../../src/cli/views/eval.ts";
import { binned, renderPlot, wantsAscii } from "../../../src/cli/views/plot.ts";
import { renderRegrade } from "../../../src/cli/views/regrade.ts";
import { renderAttempts, type ShownAttempt } from "../../../src/cli/views/rollouts.ts";
import { createStyle } from "../../../src/cli/views/style.ts";
import { widthOf } from "../../../src/cli/views/text.ts";
import { measuredWords } from "../../../src/cli/views/units.ts";

const style = createStyle(false);

describe("a curve", () => {
  test("rises from the left below to the right above, with its range and steps", () => {
    const lines = renderPlot([0, 1, 2, 3], [1, 4], { width: 40, height: 2, isAscii: false });
    expect(lines).toEqual(["   3.000 │  ▃█", "   0.000 │▁▆██", "    step  1  4"]);
  });

  test("in ASCII only, where the terminal has no more", () => {
    const text = renderPlot([0, 1, 2, 3], [1, 4], { width: 40, height: 2, isAscii: true }).join("\n");
    expect(text).toMatch(/^[\x20-\x7e\n]*$/);
    expect(wantsAscii({ TERM: "dumb" })).toBe(true);
    expect(wantsAscii({ LANG: "C" })).toBe(true);
    expect(wantsAscii({ LC_ALL: "", LANG: "de_DE.UTF-8" })).toBe(false);
    expect(wantsAscii({ TERM: "xterm" })).toBe(false);
  });

  test.each([40, 80, 200])("at %d columns it is as wide as that, and means what it did", (width) => {
    const values = Array.from({ length: 1000 }, (_, i) => i);
    const lines = renderPlot(values, [1, 1000], { width, height: 4, isAscii: false });
    for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
    expect(widthOf(lines[3]!)).toBe(width);
    const bins = binned(values, 7);
    expect(bins).toHaveLength(7);
    expect([...bins].sort((a, b) => a - b)).toEqual(bins);
  });

  test("of equal values is flat, of none is nothing", () => {
    expect(renderPlot([2, 2], [1, 2], { width: 40, height: 2, isAscii: false })).toEqual([
      "   2.000 │",
      "   2.000 │▁▁",
      "    step  1 2",
    ]);
    expect(renderPlot([], [0, 0], { width: 40, height: 2, isAscii: false })).toEqual([]);
  });
});

describe("answers", () => {
  const shown: readonly ShownAttempt[] = [
    {
      group: 0,
      index: 3,
      task: 7,
      reward: 0.25,
      metrics: { boxed: 1 },
      note: "found 4",
      weights: 2,
      turns: [
        { prompt: "What is \u001b[31m2+3?\n", answer: "z".repeat(150), tokens: 5, stop: "length" },
        { prompt: "No. 你好你好你好你好你好你好你好你好你好你好你好你好", answer: "4\nor so", tokens: 2, stop: "stop" },
      ],
    },
    {
      group: 1,
      index: 0,
      task: 8,
      taskName: "eight",
      turns: [{ prompt: "And then?", answer: "until here", tokens: 2, stop: "stop" }],
      fault: { code: "RL7103", message: "The grader was silent." },
    },
  ];
  const all = [
    { group: 0, index: 3, task: 7, turns: [], reward: 0.25, metrics: {}, weights: 2 },
    { group: 1, index: 0, task: 8, fault: { code: "RL7103", message: "" } },
    { group: 1, index: 1, task: 8, turns: [], reward: 0.75, metrics: {}, weights: 2 },
  ];

  test.each([40, 60, 120, 200])("at %d columns no line is longer and nothing is lost", (width) => {
    const text = renderAttempts(
      { title: "run.agent, step 3", attempts: all, fitting: all.length, shown },
      { style, width },
    );
    for (const line of text.split("\n")) expect(widthOf(line), line).toBeLessThanOrEqual(width);
    expect([...text].filter((char) => char === "z")).toHaveLength(150);
    expect([...text].filter((char) => char === "你")).toHaveLength(12);
    // No control character reaches the terminal.
    expect(text).not.toContain("\u001b");
    const said = text.replaceAll(/\s+/g, " ");
    expect(said).toContain("run.agent, step 3: 3 answers, reward 0.500 (0.25 to 0.75), 1 lost");
    expect(said).toContain("task 7, answer 0.3 reward 0.25 7 tokens, 2 turns, cut");
    expect(said).toContain("note found 4");
    expect(said).toContain("task 8 eight, answer 1.0 lost");
    expect(said).toContain("answer until here fault The grader was silent. (RL7103)");
    expect(said).toContain("1 more: --worst K, --best K, --task I, --lost, --limit N");
  });
});

test("an eval: interval, thresholds, tags, losses", () => {
  const text = renderEval(
    {
      name: "eval.held",
      what: "run.agent at step 4",
      result: {
        tasks: 4,
        samples: 2,
        lost: 1,
        fault: "It was silent. (RL7103)",
        metrics: { reward: 0.5, "pass@1": 0.25 },
        error: 0.1,
        tags: { odd: { tasks: 2, reward: 0.75 }, even: { tasks: 2, reward: 0.25 } },
      },
      thresholds: { reward: { min: 0.6 }, "pass@1": { max: 0.3 }, f1: { min: 1 } },
      passed: false,
      faults: ["reward is 0.500, below 0.6", "it has no metric f1 (it has reward, pass@1)"],
    },
    style,
  );
  expect(text.split("\n")).toEqual([
    "eval.held  run.agent at step 4  not passed",
    "  reward  0.500 ±0.100  at least 0.6: NO",
    "  pass@1  0.250         at most 0.3: yes",
    "  it has no metric f1 (it has reward, pass@1)",
    "  even  0.250  (2 tasks)",
    "  odd   0.750  (2 tasks)",
    "  1 lost to faults. Most often: It was silent. (RL7103)",
    "  4 tasks, 2 answers each",
    "",
  ]);
});

test("a regrade: a line a step, the largest differences, the whole", () => {
  const text = renderRegrade(
    {
      address: "run.agent",
      steps: [
        { step: 2, attempts: 8, judged: 6, changed: 3, lost: 1, failed: 1, before: 0.5, after: 0.25 },
        { step: 3, attempts: 8, judged: 0, changed: 0, lost: 8, failed: 0 },
      ],
      differences: [{ step: 2, task: 5, group: 0, index: 1, before: 1, after: 0, note: "found 4" }],
      fault: "It was silent. (RL7103)",
    },
    { style, width: 80 },
  );
  expect(text).toContain("     2        8        3           2      0.5000 → 0.2500\n");
  expect(text).toContain("  step 2, task 5, answer 0.1: 1 → 0\n    found 4\n");
  expect(text).toContain("run.agent: 3 of 6 rewards changed (50 %).");
  expect(text).toContain("1 were judged before and not now. Most often: It was silent. (RL7103)");
});

test("a step says reward and eval, or its loss, which is no negative zero", () => {
  expect(measuredWords({ loss: -0.00001, reward: 0.5, evalReward: 0.25 })).toEqual(["reward 0.500", "eval 0.250"]);
  expect(measuredWords({ loss: -0.00001, heldOutLoss: 1 })).toEqual(["loss 0.0000", "held-out 1.0000"]);
  expect(measuredWords({ loss: -0.5 })).toEqual(["loss -0.5000"]);
});
