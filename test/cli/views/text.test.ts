import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutAround, printable, widthOf, wrap } from "../../../src/cli/views/text.ts";

test.each([
  ["abc", 3],
  ["日本", 4],
  ["🎉", 2],
  ["e\u0301", 1],
  ["\u200D", 0],
  ["ｆｕｌｌ", 8],
  ["", 0],
])("width of %j is %i", (text, width) => {
  expect(widthOf(text)).toBe(width);
});

test("printable shows no control characters", () => {
  expect(printable("a\tb\u001b[31m\u0007\u009b")).toBe("a    b\uFFFD[31m\uFFFD\uFFFD");
});

describe("wrap", () => {
  test("breaks at spaces and keeps line breaks", () => {
    expect(wrap("one two three\nfour", 8)).toEqual(["one two", "three", "four"]);
  });

  test("leaves a long word alone", () => {
    expect(wrap(`a ${"x".repeat(12)} b`, 8)).toEqual(["a", "x".repeat(12), "b"]);
  });

  test("keeps short code together", () => {
    expect(wrap("write `a b c` or `d e`", 12)).toEqual(["write", "`a b c` or", "`d e`"]);
    expect(wrap("an odd ` tick", 8)).toEqual(["an odd `", "tick"]);
  });

  test("loses no word and no line is too long", () => {
    const word = fc.string({ unit: fc.constantFrom("a", "日", "-"), minLength: 1, maxLength: 8 });
    fc.assert(
      fc.property(fc.array(word), fc.integer({ min: 16, max: 40 }), (words, width) => {
        const lines = wrap(words.join(" "), width);
        expect(lines.join(" ")).toBe(words.join(" "));
        for (const line of lines) expect(widthOf(line)).toBeLessThanOrEqual(width);
      }),
    );
  });
});

describe("cutAround", () => {
  test("marks by columns, not by units", () => {
    expect(cutAround("a: 全部 b", 3, 5, 80)).toEqual({ text: "a: 全部 b", start: 3, end: 7 });
    expect(cutAround("a:\tb", 3, 4, 80)).toEqual({ text: "a:    b", start: 6, end: 7 });
  });

  test("an empty mark is one column wide", () => {
    expect(cutAround("ab", 2, 2, 80)).toEqual({ text: "ab", start: 2, end: 3 });
  });

  test("the mark is always within the line, and under what it marks", () => {
    const line = fc.string({ unit: fc.constantFrom("a", " ", "\t", "全", "🎉", "é"), maxLength: 200 });
    fc.assert(
      fc.property(line, fc.nat(), fc.nat(), fc.integer({ min: 20, max: 100 }), (text, a, b, width) => {
        const points = [...text];
        const from = points.slice(0, a % (points.length + 1)).join("").length;
        const to =
          from +
          points
            .slice(a % (points.length + 1))
            .slice(0, b % 20)
            .join("").length;
        const cut = cutAround(text, from, to, width);
        expect(widthOf(cut.text)).toBeLessThanOrEqual(width);
        expect(cut.start).toBeGreaterThanOrEqual(0);
        expect(cut.end).toBeGreaterThan(cut.start);
        expect(cut.end).toBeLessThanOrEqual(width + 1);
        const marked = printable(text.slice(from, to));
        const at = columns(cut.text, cut.start);
        // What begins at the mark is what was marked, as far as it fits.
        const seen = at.replace(/…$/, "");
        expect(seen.startsWith(marked) || marked.startsWith(seen)).toBe(true);
      }),
    );
  });
});

/** The rest of a text from a column on. */
function columns(text: string, from: number): string {
  let at = 0;
  const points = [...text];
  while (points.length > 0 && at < from) at += widthOf(points.shift() ?? "");
  return points.join("");
}
