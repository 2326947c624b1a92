// Which rows make which step: properties over any number of rows, lengths and settings.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { Batches } from "../../src/training/batches.ts";
import { permutation, uniform } from "../../src/training/random.ts";

const setup = fc.record({
  lengths: fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 40 }),
  batch_size: fc.integer({ min: 1, max: 10 }),
  batch_tokens: fc.option(fc.integer({ min: 1, max: 120 }), { nil: undefined }),
  seed: fc.nat(),
});

function batchesOf({
  lengths,
  batch_size,
  batch_tokens,
  seed,
}: typeof setup extends fc.Arbitrary<infer T> ? T : never) {
  const settings = { batch_size, seed, ...(batch_tokens === undefined ? {} : { batch_tokens }) };
  return new Batches([...lengths.keys()], (row) => lengths[row]!, settings);
}

describe("batches", () => {
  test("each epoch has every row once, within the limits", () => {
    fc.assert(
      fc.property(setup, fc.integer({ min: 1, max: 3 }), (s, epochs) => {
        const batches = batchesOf(s);
        for (let epoch = 0; epoch < epochs; epoch += 1) {
          const [first, last] = [batches.steps({ epochs: epoch }) + 1, batches.steps({ epochs: epoch + 1 })];
          const rows: number[] = [];
          for (let step = first; step <= last; step += 1) {
            const batch = batches.at(step).rows;
            const tokens = batch.reduce((n, row) => n + s.lengths[row]!, 0);
            expect(batch.length).toBeGreaterThan(0);
            expect(batch.length).toBeLessThanOrEqual(s.batch_size);
            if (batch.length > 1) expect(tokens).toBeLessThanOrEqual(s.batch_tokens ?? Number.POSITIVE_INFINITY);
            rows.push(...batch);
          }
          expect(rows.sort((a, b) => a - b)).toEqual([...s.lengths.keys()]);
          expect(batches.at(last).epoch).toBe(epoch + 1);
        }
      }),
    );
  });
  test("a step is the same whatever was asked before it", () => {
    fc.assert(
      fc.property(setup, fc.array(fc.integer({ min: 1, max: 60 }), { minLength: 1 }), (s, steps) => {
        const used = batchesOf(s);
        for (const step of steps) expect(used.at(step)).toEqual(batchesOf(s).at(step));
      }),
    );
  });
  test("epochs differ, seeds differ, parts of an epoch round up", () => {
    const s = { lengths: Array.from({ length: 30 }, () => 1), batch_size: 4, batch_tokens: undefined, seed: 1 };
    const batches = batchesOf(s);
    expect(batches.at(1).rows).not.toEqual(batches.at(9).rows);
    expect(batches.at(1).rows).not.toEqual(batchesOf({ ...s, seed: 2 }).at(1).rows);
    expect([0.5, 1, 1.01, 2].map((epochs) => batches.steps({ epochs }))).toEqual([4, 8, 9, 16]);
    expect(batches.steps({ steps: 5 })).toBe(5);
    expect(batches.at(8)).toMatchObject({ epoch: 1, rows: { length: 2 } });
  });
});

describe("random numbers", () => {
  test("are pinned: changing them would change every run", () => {
    expect([...permutation(10, 7, 3)]).toEqual([9, 6, 0, 5, 3, 2, 7, 4, 8, 1]);
    expect(uniform(1, 2, 3)).toBe(0.06794258664743003);
  });
  test("are uniform enough: 10000 draws in 20 bins", () => {
    const bins = new Array<number>(20).fill(0);
    for (let i = 0; i < 10_000; i += 1) bins[Math.floor(uniform(42, i % 7, i) * 20)]! += 1;
    const chi = bins.reduce((sum, n) => sum + (n - 500) ** 2 / 500, 0);
    // 19 degrees of freedom: above 43.8 with a chance of 0.1 %.
    expect(chi).toBeLessThan(43.8);
  });
  test("a permutation holds every number once, also for large seeds", () => {
    for (const seed of [0, 2 ** 32, Number.MAX_SAFE_INTEGER]) {
      expect([...permutation(100, seed, 0)].sort((a, b) => a - b)).toEqual(Array.from({ length: 100 }, (_, i) => i));
    }
    expect(permutation(100, 1, 0)).not.toEqual(permutation(100, 1 + 2 ** 32, 0));
  });
});
