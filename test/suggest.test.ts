import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { closest, didYouMean, editDistance, listNames } from "../src/suggest.ts";

/** The textbook recursion, exponential and obvious. */
function slowDistance(a: string, b: string): number {
  if (a === "" || b === "") return a.length + b.length;
  const cost = a.at(-1) === b.at(-1) ? 0 : 1;
  const [x, y] = [a.slice(0, -1), b.slice(0, -1)];
  let best = Math.min(slowDistance(x, b) + 1, slowDistance(a, y) + 1, slowDistance(x, y) + cost);
  if (a.length > 1 && b.length > 1 && a.at(-1) === b.at(-2) && a.at(-2) === b.at(-1))
    best = Math.min(best, slowDistance(a.slice(0, -2), b.slice(0, -2)) + 1);
  return best;
}

describe("editDistance", () => {
  test("agrees with the plain recursion", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 5 });
    fc.assert(
      fc.property(word, word, (a, b) => {
        expect(editDistance(a, b, 10)).toBe(slowDistance(a, b));
      }),
    );
  });

  test("stops above its limit", () => {
    expect(editDistance("kitten", "sitting", 2)).toBe(3);
    expect(editDistance("a".repeat(50), "b".repeat(50), 3)).toBe(4);
  });
});

describe("closest", () => {
  test.each([
    ["lerning_rate", ["learning_rate", "lora_rank"], "learning_rate"],
    ["learning-rate", ["learning_rate"], "learning_rate"],
    ["Epochs", ["epochs", "steps"], "epochs"],
    ["teh", ["the", "tea"], "the"],
    ["xyz", ["learning_rate"], undefined],
    ["", ["a"], undefined],
    ["x".repeat(100), ["x".repeat(99)], undefined],
  ])("%s among %j is %s", (name, candidates, expected) => {
    expect(closest(name, candidates)).toBe(expected);
  });

  test("prefers the nearer, then the earlier", () => {
    expect(closest("trace", ["tracks", "traces", "trades"])).toBe("traces");
    expect(closest("runx", ["runa", "runb"])).toBe("runa");
  });
});

test("didYouMean is a sentence or nothing", () => {
  expect(didYouMean("epoch", ["epochs"])).toBe(" Did you mean `epochs`?");
  expect(didYouMean("zebra", ["epochs"])).toBe("");
});

test.each([
  [[], ""],
  [["a"], "`a`"],
  [["a", "b"], "`a` and `b`"],
  [["a", "b", "c"], "`a`, `b` and `c`"],
  [["a", "b", "c", "d"], "`a`, `b`, `c` and 1 more"],
])("listNames %j", (names, expected) => {
  expect(listNames(names, 3)).toBe(expected);
});
