import { expect, test } from "vitest";
import { exp } from "../../../src/servers/embedded/exp.ts";

test("agrees with Math.exp to 1e-9 over its whole range", () => {
  for (let x = -700; x <= 700; x += 0.0137) expect(Math.abs(exp(x) / Math.exp(x) - 1)).toBeLessThan(1e-9);
});

test("is exact at 0, and has the limits of the exponential", () => {
  expect(exp(0)).toBe(1);
  expect(exp(-0)).toBe(1);
  expect(exp(-1e9)).toBe(0);
  expect(exp(Number.NEGATIVE_INFINITY)).toBe(0);
  expect(exp(1e9)).toBe(Number.POSITIVE_INFINITY);
  expect(exp(Number.POSITIVE_INFINITY)).toBe(Number.POSITIVE_INFINITY);
  expect(exp(Number.NaN)).toBeNaN();
});

test("never falls where its argument rises", () => {
  let before = 0;
  for (let x = -20; x <= 20; x += 1e-4) {
    const value = exp(x);
    expect(value).toBeGreaterThan(before);
    before = value;
  }
});
