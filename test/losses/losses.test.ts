/**
 * The losses against the formulas as the protocol document writes them (5.1, 5.2), in double precision: values directly,
 * derivatives by central differences. What the formulas put behind a stop-gradient is held fixed in the difference.
 */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { LossArguments } from "../../src/losses/loss.ts";
import { LOSSES, lossNamed } from "../../src/losses/registry.ts";
import { SERVER_TRAITS } from "../../src/tinker/index.ts";

const schema = JSON.parse(readFileSync(new URL("../../schemas/rlcli.schema.json", import.meta.url), "utf8"));

test("backends are those of the client's description of each kind of server", () => {
  const kinds = {
    embedded: "embedded",
    hosted: "hosted",
    jax: "skyrl-jax",
    fsdp: "skyrl-fsdp",
    megatron: "skyrl-megatron",
  } as const;
  for (const [backend, kind] of Object.entries(kinds)) {
    const named = LOSSES.filter(({ backends }) => (backends as readonly string[]).includes(backend)).map(
      ({ name }) => name,
    );
    expect(named.sort(), backend).toEqual([...SERVER_TRAITS[kind].losses].sort());
  }
});

test("options and their defaults are the spec's", () => {
  const fields: Record<string, { default?: number; minimum?: number; "x-when"?: { type: string[] } }> =
    schema.$defs.loss.properties;
  for (const [name, field] of Object.entries(fields)) {
    const types = field["x-when"]?.type;
    if (types === undefined) continue;
    const having = LOSSES.filter(({ options }) => options.some((option) => option.name === name));
    expect(having.map((loss) => loss.name).sort(), name).toEqual([...types].sort());
    for (const { options } of having)
      expect(options.find((option) => option.name === name)!.default, name).toBe(field.default);
  }
});

interface Position {
  /** ℓ or v. */
  readonly x: number;
  /** q or v_old. */
  readonly old: number;
  /** A or R. */
  readonly signal: number;
  readonly weight: number;
}
interface Case {
  readonly positions: readonly Position[];
  readonly options: Readonly<Record<string, number>>;
}
/** The loss at one position when its output is `x` and everything behind a stop-gradient is as at `p.x`. */
type Formula = (x: number, p: Position, options: Record<string, number>, all: readonly Position[]) => number;

const clip = (value: number, low: number, high: number) => Math.min(Math.max(value, low), high);
const thresholds = (o: Record<string, number>) => [o.clip_low_threshold!, o.clip_high_threshold!] as const;
const sum = (values: readonly number[]) => values.reduce((a, b) => a + b, 0);

const FORMULAS: Readonly<Record<string, Formula>> = {
  cross_entropy: (x) => -x,
  importance_sampling: (x, { old, signal }) => -Math.exp(x - old) * signal,
  ppo: (x, { old, signal }, o) => {
    const r = Math.exp(x - old);
    return -Math.min(r * signal, clip(r, ...thresholds(o)) * signal);
  },
  cispo: (x, p, o) => -clip(Math.exp(p.x - p.old), ...thresholds(o)) * p.signal * x,
  dro: (x, { old, signal }, { beta }) => -(x * signal - 0.5 * beta! * (x - old) ** 2),
  gspo: (x, p, o, all) => {
    const m = sum(all.map(({ x: l, old, weight }) => weight * (l - old))) / Math.max(sum(all.map((a) => a.weight)), 1);
    const s = Math.exp(Math.min(x - p.x + m, 10));
    return -Math.min(s * p.signal, clip(s, ...thresholds(o)) * p.signal);
  },
  dppo: (x, { x: now, old, signal }, { delta_low, delta_high }) => {
    const isUp = signal > 0 && Math.exp(now) - Math.exp(old) > delta_high!;
    const isDown = signal < 0 && Math.exp(old) - Math.exp(now) > delta_low!;
    return isUp || isDown ? 0 : -Math.exp(x - old) * signal;
  },
  ppo_critic: (x, { old, signal }, { value_clip: c }) =>
    0.5 * Math.max((old + clip(x - old, -c!, c!) - signal) ** 2, (x - signal) ** 2),
};

test("every loss has a formula here", () => {
  expect(LOSSES.map(({ name }) => name).sort()).toEqual(Object.keys(FORMULAS).sort());
});

/** As the datum of a loss: the critic's tensors have names of their own. */
function datumOf(name: string, { positions, options }: Case): LossArguments {
  const column = (key: keyof Position) => Float64Array.from(positions, (p) => p[key]);
  const isCritic = lossNamed(name)!.of === "critic";
  const [old, signal] = isCritic ? ["values", "returns"] : ["logprobs", "advantages"];
  const tensors = { weights: column("weight"), [old!]: column("old"), [signal!]: column("signal") };
  return { outputs: column("x"), tensors, options };
}

const position: fc.Arbitrary<Position> = fc.record({
  x: fc.double({ min: -4, max: -0.01, noNaN: true }),
  old: fc.double({ min: -4, max: -0.01, noNaN: true }),
  signal: fc.double({ min: -3, max: 3, noNaN: true }),
  weight: fc.oneof(fc.constant(0), fc.constant(1), fc.double({ min: 0, max: 2, noNaN: true })),
});
const between = (min: number, max: number) => fc.double({ min, max, noNaN: true });
const cases: fc.Arbitrary<Case> = fc.record({
  positions: fc.array(position, { minLength: 1, maxLength: 12 }),
  options: fc.record({
    clip_low_threshold: between(0, 1),
    clip_high_threshold: between(1, 3),
    beta: between(0, 1),
    delta_low: between(0, 0.5),
    delta_high: between(0, 0.5),
    value_clip: between(0, 1),
  }),
});

const STEP = 1e-5;

describe.each(LOSSES.map((loss) => ({ loss, name: loss.name })))("$name", ({ name, loss }) => {
  const formula = FORMULAS[name]!;

  test("is the written formula, weighted, and exactly 0 where the weight is", () => {
    fc.assert(
      fc.property(cases, (sample) => {
        const { losses } = loss.evaluate(datumOf(name, sample));
        const { options, ...datum } = datumOf(name, sample);
        expect(loss.sum([datum], options)).toBe(losses.reduce((total, value) => total + value, 0));
        sample.positions.forEach((p, i) => {
          if (p.weight === 0) expect(losses[i]).toBe(0);
          else {
            const expected = p.weight * formula(p.x, p, sample.options, sample.positions);
            expect(Math.abs(losses[i]! - expected)).toBeLessThanOrEqual(1e-12 * (1 + Math.abs(expected)));
          }
        });
      }),
      { seed: 1, numRuns: 300 },
    );
  });

  test("has the sum of all data, whatever their lengths and however many they are", () => {
    const lengths = fc.array(fc.integer({ min: 0, max: 3000 }), { minLength: 0, maxLength: 6 });
    fc.assert(
      fc.property(cases, lengths, (sample, sizes) => {
        const { options } = datumOf(name, sample);
        const data = sizes.map((size) => {
          const positions = Array.from({ length: size }, (_, i) => sample.positions[i % sample.positions.length]!);
          const { outputs, tensors } = datumOf(name, { ...sample, positions });
          return { outputs, tensors };
        });
        const alone = data.map((datum) => loss.evaluate({ ...datum, options }).losses);
        const expected = alone.reduce((total, losses) => losses.reduce((sum, value) => sum + value, total), 0);
        expect(Math.abs(loss.sum(data, options) - expected)).toBeLessThanOrEqual(1e-9 * (1 + Math.abs(expected)));
      }),
      { seed: 5, numRuns: 50 },
    );
  });

  test("has the derivative of the formula", () => {
    fc.assert(
      fc.property(cases, (sample) => {
        const { derivatives } = loss.evaluate(datumOf(name, sample));
        sample.positions.forEach((p, i) => {
          const value = (x: number) => p.weight * formula(x, p, sample.options, sample.positions);
          const left = (value(p.x) - value(p.x - STEP)) / STEP;
          const right = (value(p.x + STEP) - value(p.x)) / STEP;
          // At a kink within the step the two sides differ, and the derivative is one of them.
          const slack = 1e-3 * (1 + Math.abs(left) + Math.abs(right));
          expect(derivatives[i]).toBeGreaterThan(Math.min(left, right) - slack);
          expect(derivatives[i]).toBeLessThan(Math.max(left, right) + slack);
        });
      }),
      { seed: 2, numRuns: 300 },
    );
  });

  test("does not look beyond its own datum, nor at what a weight of 0 hides", () => {
    fc.assert(
      fc.property(cases, fc.double(), (sample, noise) => {
        const hidden = {
          ...sample,
          positions: sample.positions.map((p) => (p.weight === 0 ? { ...p, x: noise, old: noise, signal: noise } : p)),
        };
        expect(loss.evaluate(datumOf(name, hidden))).toEqual(loss.evaluate(datumOf(name, sample)));
      }),
      { seed: 3 },
    );
  });

  test("weighs every position with 1 where the datum has no weights", () => {
    fc.assert(
      fc.property(cases, (sample) => {
        const ones = { ...sample, positions: sample.positions.map((p) => ({ ...p, weight: 1 })) };
        const datum = datumOf(name, ones);
        const { weights: _, ...tensors } = datum.tensors;
        expect(loss.evaluate({ ...datum, tensors })).toEqual(loss.evaluate(datum));
      }),
      { seed: 4 },
    );
  });

  test("says truly whether its derivatives depend on the outputs", () => {
    const at = (x: number) =>
      loss.evaluate(
        datumOf(name, {
          positions: [{ x, old: -1, signal: 1, weight: 1 }],
          options: {
            clip_low_threshold: 0,
            clip_high_threshold: 9,
            beta: 1,
            delta_low: 1,
            delta_high: 1,
            value_clip: 9,
          },
        }),
      );
    expect(at(-1.5).derivatives[0] === at(-0.7).derivatives[0]).toBe(loss.isLinear);
  });
});

describe("inputs of the hosted service", () => {
  const options = { clip_low_threshold: 0.8, clip_high_threshold: 1.2 };
  const outputs = [-1, -1, -1];
  const tensors = { logprobs: [-2, -1.1, -1], advantages: [1, 1, 1] };

  test("per-token thresholds replace the options", () => {
    const limits = { clip_low_threshold: [0, 0, 0], clip_high_threshold: [5, 1, 1] };
    const { losses } = lossNamed("ppo")!.evaluate({ outputs, tensors: { ...tensors, ...limits }, options });
    expect([...losses]).toEqual([-Math.E, -1, -1]);
  });

  test("sequence_ratio_mask says which positions gspo's mean is over", () => {
    const evaluate = (more: Record<string, number[]>) =>
      lossNamed("gspo")!.evaluate({
        outputs,
        tensors: { ...tensors, ...more },
        options: { ...options, clip_high_threshold: 9 },
      });
    expect(evaluate({ sequence_ratio_mask: [0, 1, 1] }).losses[0]).toBeCloseTo(-Math.exp(0.05), 12);
    expect(evaluate({}).losses[0]).toBeCloseTo(-Math.exp(1.1 / 3), 12);
  });

  test("gspo's ratio does not go beyond e^10, and has no gradient there", () => {
    const far = { outputs: [-1], tensors: { logprobs: [-30], advantages: [-1] }, options };
    const { losses, derivatives } = lossNamed("gspo")!.evaluate(far);
    expect(losses[0]).toBeCloseTo(Math.exp(10), 6);
    expect(derivatives[0]).toBe(0);
  });
});
