// The pure parts of reinforcement learning: groups, parts, rollouts on disk, metrics, pass@k.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import type { EvalOrder } from "../../../src/environment-order.ts";
import { referenceDrift, rlData } from "../../../src/training/rl/batch.ts";
import { judgeEval, passAtK } from "../../../src/training/rl/evals.ts";
import { judgeGroup, planParts } from "../../../src/training/rl/groups.ts";
import { measureGroups, measureParts } from "../../../src/training/rl/measure.ts";
import { type Attempt, fromLines, type Rollout, toLines } from "../../../src/training/rl/rollout.ts";
import { readRollouts, rolloutPath } from "../../../src/training/rl/rollout-files.ts";

const turn = (prompt: number[], tokens: number[], logprobs = tokens.map((t) => -t / 10)) => ({
  prompt: Int32Array.from(prompt),
  tokens: Int32Array.from(tokens),
  logprobs: Float32Array.from(logprobs),
  text: tokens.join(" "),
  stop: "stop" as const,
});

const rollout = (index: number, reward: number, more: Partial<Rollout> = {}): Rollout => ({
  group: 0,
  index,
  task: 3,
  turns: [turn([1, 2], [3, 4])],
  reward,
  metrics: {},
  weights: 0,
  ...more,
});

const lost = (index: number): Attempt => ({ group: 0, index, task: 3, fault: { code: "RL7103", message: "gone" } });

const RULES = { advantage: "center", min_group_size: 2, keepConstant: false } as const;

describe("a group", () => {
  test("is compared with its mean", () => {
    const { scored, dropped } = judgeGroup([rollout(0, 1), rollout(1, 0), rollout(2, 0.5)], RULES);
    expect(scored.map(({ advantage }) => advantage)).toEqual([0.5, -0.5, 0]);
    expect(dropped).toBeUndefined();
  });
  test("of equal rewards is left out, but not where the reward itself counts or all is to be exercised", () => {
    const group = [rollout(0, 1), rollout(1, 1)];
    expect(judgeGroup(group, RULES)).toMatchObject({ scored: [], dropped: "constant" });
    expect(judgeGroup(group, { ...RULES, advantage: "none" }).scored.map((s) => s.advantage)).toEqual([1, 1]);
    expect(judgeGroup(group, { ...RULES, keepConstant: true }).scored).toHaveLength(2);
  });
  test("that lost answers is kept while enough remain", () => {
    const group = [rollout(0, 1), lost(1), rollout(2, 0), lost(3)];
    expect(judgeGroup(group, RULES)).toMatchObject({ lost: 2 });
    expect(judgeGroup(group, RULES).scored).toHaveLength(2);
    expect(judgeGroup(group, { ...RULES, min_group_size: 3 })).toMatchObject({ scored: [], dropped: "small", lost: 2 });
  });
  test("of one is not one that lost too many", () => {
    expect(judgeGroup([rollout(0, 1)], { ...RULES, advantage: "none" }).scored).toHaveLength(1);
  });
});

describe("parts of a step", () => {
  test("cover all groups once, in order, and end each substep once", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 70 }),
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 9 }),
        (groups, substeps, minibatches) => {
          const parts = planParts(groups, substeps, minibatches);
          expect(parts.map(({ part }) => part)).toEqual(parts.map((_, i) => i));
          expect(parts.flatMap(({ from, to }) => Array.from({ length: to - from }, (_, i) => from + i))).toEqual(
            Array.from({ length: groups }, (_, i) => i),
          );
          const used = Math.min(substeps, groups);
          expect(parts.filter(({ isLast }) => isLast)).toHaveLength(used);
          expect(new Set(parts.map(({ substep }) => substep)).size).toBe(used);
          const sizes = parts.map(({ from, to }) => to - from);
          expect(Math.min(...sizes)).toBeGreaterThan(0);
        },
      ),
    );
  });
});

describe("a rollout in a file", () => {
  const float = fc.float({ min: -30, max: 0, noNaN: true });
  const said = fc.array(fc.tuple(fc.nat(300), float), { minLength: 1, maxLength: 6 });
  test("is what it was, to the last bit, also over several turns", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.array(fc.nat(300), { maxLength: 5 }), said, fc.boolean()), {
          minLength: 1,
          maxLength: 4,
        }),
        fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => x + 0),
        (plan, reward) => {
          const turns: ReturnType<typeof turn>[] = [];
          for (const [added, answer, extendsLast] of plan) {
            const last = turns.at(-1);
            const before = last && extendsLast ? [...last.prompt, ...last.tokens] : [];
            turns.push(
              turn(
                [...before, ...added],
                answer.map(([token]) => token),
                answer.map(([, logprob]) => logprob),
              ),
            );
          }
          const whole = rollout(2, reward, {
            turns,
            note: "x",
            metrics: { a: 1 },
            reference: [Float32Array.of(-1, -2)],
          });
          const group = [
            whole,
            lost(1),
            { ...lost(2), turns },
            { ...whole, index: 3, turns: turns.map((t) => ({ ...t, text: "other" })) },
          ];
          expect(fromLines(JSON.parse(JSON.stringify(toLines(group))))).toEqual(group);
        },
      ),
    );
  });
  test("names what it was lost to", () => {
    expect(fromLines(JSON.parse(JSON.stringify(toLines([lost(1)]))))).toEqual([lost(1)]);
  });
  test("is written with its prompt once a group", () => {
    const lines = toLines([rollout(0, 1), lost(1), rollout(2, 0)]);
    expect(lines.map((line) => "prompt" in (line.turns?.[0] ?? {}))).toEqual([true, false, false]);
    const halfway = { ...lost(1), turns: [turn([1, 2], [3])] };
    const around = toLines([rollout(0, 1), halfway, rollout(2, 0)]);
    expect(around.map((line) => "prompt" in (line.turns?.[0] ?? {}))).toEqual([true, true, false]);
    const both = toLines([rollout(0, 1), rollout(0, 1, { group: 1 })]);
    expect(both.map((line) => "prompt" in (line.turns?.[0] ?? {}))).toEqual([true, true]);
  });
});

describe("the rollouts of a step on disk", () => {
  const folderOf = (lines: readonly (object | string)[], formatVersion = 2): string => {
    const folder = mkdtempSync(join(tmpdir(), "rlcli-rollouts-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    mkdirSync(join(folder, "rollouts"));
    const text = [{ formatVersion }, ...lines].map((l) => (typeof l === "string" ? l : JSON.stringify(l)));
    writeFileSync(rolloutPath(folder, 1), `${text.join("\n")}\n`);
    return folder;
  };
  const group = (number: number, prompt: number[], reward = 1) =>
    toLines([0, 1].map((index) => ({ ...rollout(index, reward), group: number, turns: [turn(prompt, [5])] })));

  test("may have numbers as lists, as version 1 wrote them", () => {
    const { turns: _, ...rest } = rollout(0, 1);
    const first = { prompt: [1, 2], tokens: [3, 4], logprobs: [-0.5, 0], text: "a", stop: "stop" };
    const then = { added: [5], tokens: [6], logprobs: [-0.25], text: "b", stop: "stop" };
    const folder = folderOf([{ ...rest, turns: [first, then], reference: [[0, -1, -2, -3, -4, -5]] }], 1);
    const turns = [
      { ...turn([1, 2], [3, 4], [-0.5, 0]), text: "a" },
      { ...turn([1, 2, 3, 4, 5], [6], [-0.25]), text: "b" },
    ];
    const reference = [Float32Array.of(0, -1, -2, -3, -4, -5)];
    expect(readRollouts(folder, 1)).toEqual([{ ...rest, turns, reference }]);
  });
  test("of a newer version are refused, not misread", () => {
    const folder = folderOf([...group(0, [1])], 3);
    expect(() => readRollouts(folder, 1)).toThrow(/RL3006.*format version 3; this rlcli reads 2/);
  });
  test("of a group that was written again the later lines count", () => {
    const [half] = group(0, [1, 2], 0);
    const read = readRollouts(folderOf([half as object, ...group(1, [3]), ...group(0, [1, 2])]), 1) as Rollout[];
    expect(read.map(({ group: g, index, reward }) => [g, index, reward])).toEqual([
      [0, 0, 1],
      [1, 0, 1],
      [1, 1, 1],
      [0, 1, 1],
    ]);
  });
  test("an answer whose prompt is lost is not taken for one to another task", () => {
    const [, second] = group(1, [7, 8, 9]);
    const read = readRollouts(folderOf([...group(0, [1, 2]), "damaged", second as object, ...group(2, [3])]), 1);
    expect((read as Rollout[]).map(({ group: g, turns }) => [g, ...turns[0]!.prompt])).toEqual([
      [0, 1, 2],
      [0, 1, 2],
      [2, 3],
      [2, 3],
    ]);
  });
});

describe("data", () => {
  const scored = [
    { rollout: rollout(0, 1), advantage: 0.5 },
    { rollout: rollout(1, 0, { turns: [turn([1, 2, 3], [4, 5, 6, 7])] }), advantage: -0.5 },
  ];
  const total = (normalize: "token" | "sequence", count: number) =>
    rlData(scored, { normalize, count }).map(({ lossInputs }) =>
      (lossInputs.weights as Float32Array).reduce((a, b) => a + b, 0),
    );
  test("token: every sampled token counts alike; sequence: every answer", () => {
    expect(total("token", 6).map((x) => Number(x.toFixed(6)))).toEqual([0.333333, 0.666667]);
    expect(total("sequence", 4).map((x) => Number(x.toFixed(6)))).toEqual([0.25, 0.25]);
  });
  test("is shifted by one, with the advantage at sampled tokens only", () => {
    const [first] = rlData(scored, { normalize: "sequence", count: 2 });
    expect([...first!.input]).toEqual([1, 2, 3]);
    expect([...(first!.lossInputs.target_tokens as Int32Array)]).toEqual([2, 3, 4]);
    expect([...(first!.lossInputs.advantages as Float32Array)]).toEqual([0, 0.5, 0.5]);
  });
  test("the KL penalty moves credit between tokens and none in all", () => {
    const reference = [Float32Array.of(0, 0, -0.1, -0.9)];
    const one = { rollout: rollout(0, 1, { reference }), advantage: 0 };
    // log q is -0.3 and -0.4: drifts of -0.2 and 0.5, 0.15 on average.
    expect(referenceDrift([one.rollout])).toBeCloseTo(0.15, 6);
    const [datum] = rlData([one], { normalize: "token", count: 2 }, { weight: 2, mean: 0.15 });
    const advantages = [...(datum!.lossInputs.advantages as Float32Array)];
    expect(advantages.map((x) => Number(x.toFixed(5)))).toEqual([0, 0.7, -0.7]);
  });
});

describe("metrics", () => {
  test("count what was dropped and average what graders say", () => {
    const groups = [
      judgeGroup([rollout(0, 1, { metrics: { extracted: 1 } }), rollout(1, 0, { metrics: { extracted: 0 } })], RULES),
      judgeGroup([rollout(0, 1), rollout(1, 1)], RULES),
      judgeGroup([rollout(0, 1), lost(1)], RULES),
    ];
    expect(measureGroups(groups, 3)).toMatchObject({
      "off_policy/steps": 2,
      "reward/mean": 0.8,
      "groups/used": 1,
      "groups/constant": 1,
      "groups/small": 1,
      "rollouts/graded": 5,
      "rollouts/lost": 1,
      "answer/tokens": 2,
      "env/extracted": 0.5,
    });
  });
  test("the loss is the formula's, from the log-probabilities that came back", () => {
    const data = rlData([{ rollout: rollout(0, 1), advantage: 1 }], { normalize: "sequence", count: 1 });
    const result = { metrics: {}, outputs: [{ logprobs: Float32Array.of(-9, -0.3, -0.4) }] };
    const { loss, values } = measureParts({ name: "importance_sampling" }, [{ data, result }]);
    // Both ratios are 1, weights sum to 1.
    expect(loss).toBeCloseTo(-1, 6);
    expect(values["ratio/mean"]).toBeCloseTo(1, 6);
    expect(values["kl/k1"]).toBeCloseTo(0, 6);
    expect(values.entropy).toBeCloseTo(0.35, 6);
  });
});

describe("pass@k", () => {
  test("is the chance that one of k drawn answers passes", () => {
    const exact = (n: number, c: number, k: number): number => {
      let [hits, all] = [0, 0];
      for (let mask = 0; mask < 2 ** n; mask++) {
        const drawn = Array.from({ length: n }, (_, i) => i).filter((i) => mask & (1 << i));
        if (drawn.length !== k) continue;
        all += 1;
        if (drawn.some((i) => i < c)) hits += 1;
      }
      return hits / all;
    };
    for (let n = 1; n <= 7; n++)
      for (let c = 0; c <= n; c++)
        for (let k = 1; k <= n; k++) expect(passAtK(n, c, k)).toBeCloseTo(exact(n, c, k), 12);
  });
  test("of an eval, with its interval, tags and losses", () => {
    const order = { samples: 2, pass_reward: 1 } as EvalOrder;
    const groups: Attempt[][] = [
      [rollout(0, 1, { task: 0 }), rollout(1, 0, { task: 0 })],
      [rollout(0, 0, { task: 1 }), lost(1)],
      [lost(0), lost(1)],
    ];
    const result = judgeEval(groups, order, (task) => (task === 0 ? "easy" : "hard"));
    expect(result).toMatchObject({
      tasks: 3,
      lost: 3,
      metrics: { reward: 0.25, "pass@1": 0.25, "pass@2": 1 },
      tags: { easy: { tasks: 1, reward: 0.5 }, hard: { tasks: 1, reward: 0 } },
      fault: "gone. (RL7103)",
    });
    expect(result.error).toBeCloseTo((1.96 * Math.sqrt(0.125)) / Math.sqrt(2), 6);
  });
});
