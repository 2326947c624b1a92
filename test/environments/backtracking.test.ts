import fc from "fast-check";
import { expect, test } from "vitest";
import { worstSteps } from "../../src/environments/graders/backtracking.ts";

test.each([
  { pattern: "[a-m]$", repetitions: 0 },
  { pattern: "[aeiou].*[aeiou]", repetitions: 1 },
  { pattern: String.raw`####\s*(-?\d+)`, repetitions: 2, choices: 1 },
  { pattern: String.raw`\*\+\?[*+?|]`, repetitions: 0 },
  { pattern: String.raw`\p{L}{2,3}(?<name>a|b)`, repetitions: 1, choices: 1 },
  { pattern: "(?=a)(?<!b)c*?", repetitions: 1 },
])("$pattern", ({ pattern, repetitions, choices = 0 }) => {
  new RegExp(pattern, "u");
  expect(worstSteps(pattern)(99)).toBe(100 ** (repetitions + 1) * 2 ** choices);
});

test.each(["(a+)+$", "(a|a)*b", String.raw`(a*)\1`, String.raw`(?<x>a*)\k<x>`, "(?:a{2}){3}"])(
  "%s may take for ever",
  (pattern) => {
    new RegExp(pattern, "u");
    expect(worstSteps(pattern)(10)).toBe(Number.POSITIVE_INFINITY);
  },
);

/** Patterns of the parts that decide, most of them harmful. */
const patterns = fc
  .array(fc.constantFrom("a", ".", "[ab]", "(", ")", "*", "+", "?", "|", "{2}", "{1,}", "(?:", "\\1", "b", "$"), {
    minLength: 1,
    maxLength: 12,
  })
  .map((parts) => parts.join(""))
  .filter((pattern) => {
    try {
      new RegExp(pattern, "u");
      return true;
    } catch {
      return false;
    }
  });

test("what is said to take few steps takes no time, on texts that make patterns go back", () => {
  fc.assert(
    fc.property(
      patterns,
      fc.constantFrom("a", "ab", "aab"),
      fc.integer({ min: 1, max: 1500 }),
      (pattern, unit, count) => {
        const text = `${unit.repeat(count)}!`;
        fc.pre(worstSteps(pattern)(text.length) <= 5e6);
        [...text.matchAll(new RegExp(pattern, "gu"))].at(-1);
        // Exponential ones take for ever: this test would not end.
      },
    ),
    { numRuns: 3000 },
  );
});
