import { describe, expect, test } from "vitest";
import { normals, threefry, uniform } from "../../../src/servers/embedded/random.ts";

describe("threefry-2x32 with 20 rounds", () => {
  // Known answers published with the algorithm's reference implementation (Random123, kat_vectors).
  test.each([
    { key: [0, 0], counter: [0, 0], expected: [0x6b200159, 0x99ba4efe] },
    { key: [0xffffffff, 0xffffffff], counter: [0xffffffff, 0xffffffff], expected: [0x1cb996fc, 0xbb002be7] },
    { key: [0x13198a2e, 0x03707344], counter: [0x243f6a88, 0x85a308d3], expected: [0xc4923a9c, 0x483df7a0] },
  ] as const)("of counter $counter", ({ key, counter, expected }) => {
    expect(threefry(key[0], key[1], counter[0], counter[1])).toEqual(expected);
  });
});

test("uniform numbers lie in [0, 1), are even, and differ by seed, stream and counter", () => {
  const values = Array.from({ length: 20_000 }, (_, i) => uniform(5, 0, i));
  expect(values.every((value) => value >= 0 && value < 1)).toBe(true);
  const counts = new Array<number>(10).fill(0);
  for (const value of values) counts[Math.floor(value * 10)]! += 1;
  for (const count of counts) expect(Math.abs(count - 2000)).toBeLessThan(250);
  const distinct = [uniform(5, 0, 0), uniform(6, 0, 0), uniform(5, 1, 0), uniform(5, 0, 1), uniform(5 + 2 ** 32, 0, 0)];
  expect(new Set(distinct).size).toBe(distinct.length);
});

test("normal numbers have mean 0 and variance 1", () => {
  const values = normals(3, 1, 20_000);
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + value * value, 0) / values.length;
  expect(Math.abs(mean)).toBeLessThan(0.03);
  expect(Math.abs(variance - 1)).toBeLessThan(0.05);
});
