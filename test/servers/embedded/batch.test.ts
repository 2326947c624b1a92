import fc from "fast-check";
import { expect, test } from "vitest";
import { bucketLength, planBatches } from "../../../src/servers/embedded/batch.ts";

test.each([
  [1, 32],
  [32, 32],
  [33, 40],
  [56, 56],
  [63, 64],
  [65, 80],
  [128, 128],
  [129, 160],
  [1000, 1024],
  [1025, 1280],
])("%i tokens go into a bucket of %i", (length, bucket) => {
  expect(bucketLength(length)).toBe(bucket);
});

test("every row is in exactly one batch, which is long and wide enough for it and not much larger", () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 3000 }), { minLength: 1, maxLength: 300 });
  const widthOf = (row: number) => (row % 5 === 0 ? 3 : 1);
  fc.assert(
    fc.property(lengths, (all) => {
      const sent = all.map((length, row) => ({ tokens: { length }, targets: { length: length * widthOf(row) } }));
      const batches = planBatches(sent);
      expect(batches.flatMap(({ rows }) => rows).sort((a, b) => a - b)).toEqual(all.map((_, i) => i));
      for (const { rows, size, length, width } of batches) {
        expect(rows.every((row) => widthOf(row) === width)).toBe(true);
        expect(size).toBeGreaterThanOrEqual(rows.length);
        expect(size).toBeLessThan(rows.length * 2);
        expect(Math.log2(size) % 1).toBe(0);
        expect(Math.max(...rows.map((row) => all[row]!))).toBeGreaterThan(length * 0.79 - 32);
        expect(Math.max(...rows.map((row) => all[row]!))).toBeLessThanOrEqual(length);
        expect(size === 1 || size * length <= 4096).toBe(true);
      }
    }),
  );
});
