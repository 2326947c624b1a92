import { expect, test } from "vitest";
import { durationMs } from "../src/duration.ts";

test.each([
  ["0s", 0],
  ["300s", 300_000],
  ["10m", 600_000],
  ["2h", 7_200_000],
  ["1d", 86_400_000],
])("%s", (text, ms) => {
  expect(durationMs(text)).toBe(ms);
});

test.each(["", "10", "10 m", "1.5h", "-1s", "10ms", "m"])("%j is no duration", (text) => {
  expect(durationMs(text)).toBeNaN();
});
