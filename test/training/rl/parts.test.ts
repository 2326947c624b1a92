import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type AdvantageMode, groupAdvantages, isConstant } from "../../../src/training/rl/advantages.ts";
import { measureDrift } from "../../../src/training/rl/drift.ts";
import { policyTensors, segmentsOf, type Turn } from "../../../src/training/rl/segments.ts";

describe("advantages", () => {
  test.each<[AdvantageMode, number[], number[]]>([
    ["center", [1, 0, 0, 1], [0.5, -0.5, -0.5, 0.5]],
    ["center", [3], [0]],
    ["std", [1, 0], [0.5 / (0.5 + 1e-6), -0.5 / (0.5 + 1e-6)]],
    ["std", [2, 2, 2], [0, 0, 0]],
    ["leave_one_out", [1, 0, 0], [1, -0.5, -0.5]],
    ["leave_one_out", [1], [0]],
    ["none", [1, 0], [1, 0]],
    ["center", [], []],
  ])("%s of %j", (mode, rewards, expected) => {
    const advantages = [...groupAdvantages(rewards, mode)];
    expect(advantages).toHaveLength(expected.length);
    for (const [at, value] of expected.entries()) expect(advantages[at]).toBeCloseTo(value, 12);
  });

  test("an ungraded rollout is refused", () => {
    for (const bad of [Number.NaN, Number.POSITIVE_INFINITY])
      expect(() => groupAdvantages([1, bad], "center")).toThrow(RangeError);
  });

  const rewards = fc.array(fc.double({ min: -10, max: 10, noNaN: true }), { minLength: 2, maxLength: 12 });

  test("sum to zero, and do not depend on a constant added to all rewards (property)", () => {
    fc.assert(
      fc.property(
        rewards,
        fc.constantFrom("center", "std", "leave_one_out"),
        fc.integer({ min: -5, max: 5 }),
        (group, mode, shift) => {
          const advantages = groupAdvantages(group, mode as AdvantageMode);
          expect(Math.abs(advantages.reduce((a, b) => a + b, 0))).toBeLessThan(1e-6);
          const moved = groupAdvantages(
            group.map((r) => r + shift),
            mode as AdvantageMode,
          );
          for (const [at, value] of advantages.entries()) expect(Math.abs(moved[at]! - value)).toBeLessThan(1e-3);
        },
      ),
    );
  });

  test("leave-one-out is the reward less the mean of the others (property)", () => {
    fc.assert(
      fc.property(rewards, (group) => {
        const advantages = groupAdvantages(group, "leave_one_out");
        for (const [at, reward] of group.entries()) {
          const others = group.filter((_, other) => other !== at);
          expect(advantages[at]).toBeCloseTo(reward - others.reduce((a, b) => a + b, 0) / others.length, 9);
        }
      }),
    );
  });

  test("constant groups are told apart", () => {
    expect([isConstant([1, 1, 1]), isConstant([0]), isConstant([]), isConstant([1, 1, 0])]).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });
});

const turn = (prompt: number[], tokens: number[]): Turn => ({
  prompt: Int32Array.from(prompt),
  tokens: Int32Array.from(tokens),
  logprobs: Float32Array.from(tokens.map((token) => -token / 8)),
});

describe("segments", () => {
  test("one turn", () => {
    const [segment, ...rest] = segmentsOf([turn([1, 2], [3, 4])]);
    expect(rest).toEqual([]);
    expect([...segment!.tokens]).toEqual([1, 2, 3, 4]);
    expect([...segment!.sampled]).toEqual([0, 0, 1, 1]);
    expect([...segment!.logprobs]).toEqual([0, 0, -0.375, -0.5]);
  });

  test("turns whose prompts extend what was said share one segment", () => {
    const segments = segmentsOf([turn([1, 2], [3]), turn([1, 2, 3, 9, 9], [4])]);
    expect(segments).toHaveLength(1);
    expect([...segments[0]!.tokens]).toEqual([1, 2, 3, 9, 9, 4]);
    expect([...segments[0]!.sampled]).toEqual([0, 0, 1, 0, 0, 1]);
  });

  test("a history that was rewritten begins a new segment", () => {
    const segments = segmentsOf([turn([1, 2], [3, 7]), turn([1, 2, 3, 9], [4]), turn([1, 2, 3, 9, 4, 5], [6])]);
    expect(segments.map((segment) => [...segment.tokens])).toEqual([
      [1, 2, 3, 7],
      [1, 2, 3, 9, 4, 5, 6],
    ]);
  });

  test("every sampled token is trained exactly once, with its own log-probability (property)", () => {
    const someTurns = fc.array(
      fc.record({
        extends: fc.boolean(),
        add: fc.array(fc.nat(9), { maxLength: 3 }),
        say: fc.array(fc.nat(9), { minLength: 1, maxLength: 4 }),
      }),
      { minLength: 1, maxLength: 5 },
    );
    fc.assert(
      fc.property(someTurns, (plan) => {
        let history: number[] = [0];
        const turns = plan.map(({ extends: isExtended, add, say }) => {
          const prompt = isExtended ? [...history, ...add] : [10, ...add];
          history = [...prompt, ...say];
          return turn(prompt, say);
        });
        const trained = segmentsOf(turns).flatMap(({ tokens, sampled, logprobs }) =>
          [...tokens].flatMap((token, at) => (sampled[at] === 1 ? [[token, logprobs[at]]] : [])),
        );
        expect(trained).toEqual(
          turns.flatMap(({ tokens, logprobs }) => [...tokens].map((token, at) => [token, logprobs[at]])),
        );
      }),
    );
  });

  test("a sample whose counts differ is refused", () => {
    expect(() => segmentsOf([{ ...turn([1], [2, 3]), logprobs: new Float32Array(1) }])).toThrow(RangeError);
  });

  test("tensors predict the next token, and only sampled ones carry weight and advantage", () => {
    const [segment] = segmentsOf([turn([1, 2], [3, 4])]);
    const { input, targets, weights, logprobs, advantages } = policyTensors(segment!, -0.5);
    expect([[...input], [...targets], [...weights]]).toEqual([
      [1, 2, 3],
      [2, 3, 4],
      [0, 1, 1],
    ]);
    expect([...logprobs]).toEqual([0, -0.375, -0.5]);
    expect([...advantages].map((a) => a + 0)).toEqual([0, -0.5, -0.5]);
  });
});

describe("drift", () => {
  test("of a policy that has not moved", () => {
    const same = { policy: [-1, -2], sampler: [-1, -2], weights: [1, 1] };
    expect(measureDrift([same], { low: 0.8, high: 1.2 })).toEqual({
      tokens: 2,
      klK1: 0,
      klK2: 0,
      klK3: 0,
      entropy: 1.5,
      ratioMean: 1,
      ratioMax: 1,
      clipFraction: 0,
    });
  });

  test("counts only what was sampled", () => {
    const drift = measureDrift([{ policy: [-9, -1 + Math.log(2)], sampler: [0, -1], weights: [0, 1] }], {
      low: 0.8,
      high: 1.2,
    })!;
    expect(drift).toMatchObject({ tokens: 1, clipFraction: 1 });
    expect(drift.ratioMean).toBeCloseTo(2, 12);
    expect(drift.klK1).toBeCloseTo(-Math.log(2), 12);
    expect(drift.klK3).toBeCloseTo(1 - Math.log(2), 12);
    expect(measureDrift([{ policy: [1], sampler: [1], weights: [0] }], { low: 0.8, high: 1.2 })).toBeUndefined();
  });

  test("k3 is never negative (property)", () => {
    const number = fc.double({ min: -20, max: 0, noNaN: true });
    fc.assert(
      fc.property(fc.array(fc.tuple(number, number), { minLength: 1 }), (pairs) => {
        const data = { policy: pairs.map(([a]) => a), sampler: pairs.map(([, b]) => b), weights: pairs.map(() => 1) };
        expect(measureDrift([data], { low: 0.8, high: 1.2 })!.klK3).toBeGreaterThanOrEqual(0);
      }),
    );
  });
});
