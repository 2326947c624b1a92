// Advantages, training data, KL penalty and metrics are those of tinker-cookbook on the same rollouts.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { uniform } from "../../src/training/random.ts";
import { referenceDrift, rlData } from "../../src/training/rl/batch.ts";
import { measureDrift } from "../../src/training/rl/drift.ts";
import { judgeGroup } from "../../src/training/rl/groups.ts";
import type { Rollout, RolloutTurn } from "../../src/training/rl/rollout.ts";
import { segmentsOf } from "../../src/training/rl/segments.ts";
import { cookbookPython, runCommand } from "./environment.ts";

const PENALTY = 0.3;

/** Numbers from a counter, the same every time. */
function stream(seed: number) {
  let count = 0;
  return () => uniform(seed, 1, count++);
}

/** Rollouts of one to three turns, some of which do not extend the turn before. */
function rolloutsOf(seed: number): Rollout[][] {
  const random = stream(seed);
  const tokens = (count: number) => Array.from({ length: count }, () => Math.floor(random() * 200));
  const turnsOf = (): RolloutTurn[] => {
    const turns: RolloutTurn[] = [];
    for (let left = 1 + Math.floor(random() * 3); left > 0; left -= 1) {
      const last = turns.at(-1);
      const before = last && random() < 0.7 ? [...last.prompt, ...last.tokens] : [];
      const answer = tokens(1 + Math.floor(random() * 5));
      turns.push({
        prompt: Int32Array.from([...before, ...tokens(1 + Math.floor(random() * 4))]),
        tokens: Int32Array.from(answer),
        logprobs: Float32Array.from(answer, () => -random() * 4),
        text: "",
        stop: "stop",
      });
    }
    return turns;
  };
  return Array.from({ length: 3 }, (_, group) =>
    Array.from({ length: 4 }, (_, index): Rollout => {
      const turns = turnsOf();
      const reference = segmentsOf(turns).map((s) => Float32Array.from(s.tokens, () => -random() * 4));
      return {
        group,
        index,
        task: group,
        turns,
        reward: Math.floor(random() * 5) / 4,
        metrics: {},
        weights: 0,
        reference,
      };
    }),
  );
}

describe.skipIf(!cookbookPython)("tinker-cookbook on the same rollouts", () => {
  test.each([1, 2, 3])("seed %i", { timeout: 300_000 }, async (seed) => {
    const groups = rolloutsOf(seed);
    const rules = { advantage: "center", min_group_size: 1, keepConstant: true } as const;
    const scored = groups.flatMap((group) => judgeGroup(group, rules).scored);
    const divisor = { normalize: "token", count: 1 } as const;
    const data = rlData(scored, divisor);
    const mean = referenceDrift(groups.flat());
    const penalised = rlData(scored, divisor, { weight: PENALTY, mean });
    const random = stream(seed + 100);
    const policy = data.map(({ input }) => Float32Array.from(input, () => -random() * 4));
    const drift = measureDrift(
      data.map(({ lossInputs }, i) => ({
        policy: policy[i]!,
        sampler: lossInputs.logprobs as Float32Array,
        weights: lossInputs.weights as Float32Array,
      })),
      { low: 0, high: 9 },
    )!;

    const plain = (turn: RolloutTurn) => ({
      prompt: [...turn.prompt],
      tokens: [...turn.tokens],
      logprobs: [...turn.logprobs],
    });
    const file = join(mkdtempSync(join(tmpdir(), "rlcli-cookbook-")), "rollouts.json");
    const given = {
      groups: groups.map((group) => group.map(({ reward, turns }) => ({ reward, turns: turns.map(plain) }))),
      policy: policy.map((values) => [...values]),
      reference: groups.flat().flatMap(({ reference }) => reference!.map((values) => [...values])),
      penalty: PENALTY,
    };
    writeFileSync(file, JSON.stringify(given));
    const script = new URL("cookbook_rl.py", import.meta.url).pathname;
    const { code, stdout, stderr } = await runCommand(cookbookPython!, [script, file], { timeoutMs: 280_000 });
    expect(code, stderr).toBe(0);
    const theirs = JSON.parse(stdout.trim().split("\n").at(-1)!);

    const near = (ours: ArrayLike<number>, other: readonly number[]) => {
      expect(ours.length).toBe(other.length);
      for (let i = 0; i < ours.length; i++) expect(ours[i]).toBeCloseTo(other[i]!, 5);
    };
    near(
      scored.map(({ advantage }) => advantage),
      theirs.advantages.flat(),
    );
    expect(data).toHaveLength(theirs.data.length);
    for (const [i, { input, lossInputs }] of data.entries()) {
      const other = theirs.data[i];
      expect([...input]).toEqual(other.input);
      expect([...(lossInputs.target_tokens as Int32Array)]).toEqual(other.target_tokens);
      near(lossInputs.logprobs as Float32Array, other.logprobs);
      near(lossInputs.advantages as Float32Array, other.advantages);
      near(lossInputs.weights as Float32Array, other.mask);
      near(penalised[i]!.lossInputs.advantages as Float32Array, theirs.penalised[i]);
    }
    expect(drift.klK1).toBeCloseTo(theirs.metrics["optim/kl_sample_train_v1"], 5);
    expect(drift.klK2).toBeCloseTo(theirs.metrics["optim/kl_sample_train_v2"], 5);
    expect(drift.entropy).toBeCloseTo(theirs.metrics["optim/entropy"], 5);
    expect(mean).toBeCloseTo(theirs.metrics.kl_policy_base, 5);
  });
});
