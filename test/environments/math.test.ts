import { describe, expect, test } from "vitest";
import { extractAnswer } from "../../src/environments/graders/math/extract.ts";
import { mathGrader, sameText } from "../../src/environments/graders/math.ts";

const same: readonly (readonly [string, string])[] = [
  ["42", "42"],
  ["42.", "42"],
  ["042", "42"],
  ["+7", "7"],
  ["-7", "−7"],
  ["4.0", "4"],
  ["4.50", "4.5"],
  [".5", "0.5"],
  ["1,234", "1234"],
  ["1{,}234", "1234"],
  ["1\\,234", "1234"],
  ["1 234 567", "1234567"],
  ["1,234.50", "1234.5"],
  ["1/2", "0.5"],
  ["\\frac{1}{2}", "1/2"],
  ["\\dfrac{1}{2}", "\\tfrac12"],
  ["\\frac12", "0.5"],
  ["-\\frac{3}{4}", "-0.75"],
  ["\\frac{-3}{4}", "-\\frac{3}{4}"],
  ["3\\frac{1}{2}", "3.5"],
  ["3 1/2", "7/2"],
  ["6/4", "3/2"],
  ["0.333333333", "1/3"],
  ["50%", "0.5"],
  ["50\\%", "50"],
  ["50 percent", "50%"],
  ["12.5%", "0.125"],
  ["$5", "5"],
  ["\\$5.00", "5"],
  ["5 dollars", "$5"],
  ["5 USD", "5"],
  ["€10", "10 EUR"],
  ["5 cm", "5"],
  ["5\\text{ cm}", "5 cm"],
  ["5 \\mathrm{cm}^2", "5"],
  ["30^\\circ", "30"],
  ["30°", "30 degrees"],
  ["2 hours", "2"],
  ["3 apples", "3"],
  ["x = 5", "5"],
  ["x=5", "x = 5"],
  ["f(x) = 3", "3"],
  ["$x = 5$", "5"],
  ["$$5$$", "5"],
  ["\\(5\\)", "5"],
  ["**5**", "5"],
  ["1.5 \\times 10^3", "1500"],
  ["1.5\\cdot 10^{-3}", "0.0015"],
  ["1e-3", "0.001"],
  ["2.5E2", "250"],
  ["\\{1,2,3\\}", "\\{3,1,2\\}"],
  ["{1, 2}", "\\{2, 1\\}"],
  ["1, 2, 3", "3, 1, 2"],
  ["x=1, x=2", "2, 1"],
  ["1 and 2", "1, 2"],
  ["1 or -1", "-1, 1"],
  ["\\left\\{0, \\frac12\\right\\}", "\\{0.5, 0\\}"],
  ["(1, 2)", "(1,2)"],
  ["\\left(1,\\frac{1}{2}\\right)", "(1, 0.5)"],
  ["[0, 1)", "[0,1)"],
  ["[0,1)", "\\left[0, 1\\right)"],
  ["(-\\infty, 3]", "(-∞, 3]"],
  ["x \\in [0,1]", "[0, 1]"],
  ["[0,1] \\cup [2,3]", "[2, 3] ∪ [0, 1]"],
  ["\\sqrt{8}", "2\\sqrt{2}"],
  ["\\sqrt3", "\\sqrt{3}"],
  ["√9", "3"],
  ["\\frac{\\sqrt{2}}{2}", "\\frac{1}{\\sqrt{2}}"],
  ["2\\pi", "\\pi \\cdot 2"],
  ["2π", "2\\pi"],
  ["\\pi/4", "\\frac{\\pi}{4}"],
  ["x^2-1", "(x-1)(x+1)"],
  ["(x+1)^2", "x^2+2x+1"],
  ["2x+3", "3+2x"],
  ["\\frac{x}{2}", "0.5x"],
  ["a+b", "b+a"],
  ["\\sin^2 x+\\cos^2 x", "1"],
  ["e^{2x}", "(e^x)^2"],
  ["n(n+1)/2", "\\frac{n^2+n}{2}"],
  ["y = 2x + 1", "2x+1"],
  ["y=2x+1", "y = 1 + 2x"],
  ["2^{10}", "1024"],
  ["5!", "120"],
  ["\\log_2 8", "3"],
  ["10^{-3}", "0.001"],
  ["|{-3}|", "3"],
  ["(A)", "A"],
  ["A", "a"],
  ["A.", "A"],
  ["\\text{(B)}", "B"],
  ["yes", "Yes"],
  ["\\text{Yes}", "yes"],
  ["Monday", "monday"],
  ["New York", "new york"],
  ["True", "true"],
  ["15 = 15", "15 = 15"],
  ["0", "-0"],
  ["100000000000000000000", "1e20"],
  ["\\boxed{5}", "5"],
  ["18", "Natalia sold 9+9 = 18 clips.\n#### 18"],
  ["1,080", "#### 1080"],
  ["70,000", "#### 70000"],
];

const different: readonly (readonly [string, string])[] = [
  ["42", "43"],
  ["4.5", "4.6"],
  ["-7", "7"],
  ["1234", "12345"],
  ["1/2", "1/3"],
  ["0.33", "1/3"],
  ["3.14", "\\pi"],
  ["3", "3.001"],
  ["50%", "0.05"],
  ["5", "50%"],
  ["500", "5%"],
  ["5 cm", "5 m"],
  ["$5", "€5"],
  ["5 minutes", "5 hours"],
  ["3\\frac{1}{2}", "3/2"],
  ["31/2", "3 1/2"],
  ["1,2", "12"],
  ["1, 2", "1, 3"],
  ["\\{1,2\\}", "\\{1,2,3\\}"],
  ["\\{1,1\\}", "\\{1,2\\}"],
  ["(1, 2)", "(2, 1)"],
  ["(1,2)", "\\{1,2\\}"],
  ["[0,1]", "[0,1)"],
  ["(0,1]", "[0,1]"],
  ["[0,1]", "[0,1] \\cup [2,3]"],
  ["\\sqrt{8}", "2\\sqrt{3}"],
  ["x^2+1", "(x-1)(x+1)"],
  ["2x+3", "2x-3"],
  ["x", "y"],
  ["2\\pi", "\\pi"],
  ["e^{x}", "e^{2x}"],
  ["\\sin x", "\\cos x"],
  ["y=2x+1", "y=2x"],
  ["A", "B"],
  ["(A)", "(C)"],
  ["yes", "no"],
  ["Monday", "Tuesday"],
  ["", "5"],
  ["none", "0"],
  ["5", "five"],
  ["1e400", "1"],
  ["100000000000000000001", "100000000000000000000"],
  ["0.1", "0.01"],
  ["9", "0.9"],
  ["1.08", "1,080"],
  ["2^{10}", "1023"],
  ["5!", "25"],
  ["\\frac{1}{0}", "0"],
  ["x+", "x"],
  ["\\frac{", "1"],
  ["{{{{", "1"],
  ["\\boxed{", "1"],
];

describe("same answers", () => {
  test.each(same)("%s = %s", async (a, b) => {
    expect(await sameText(a, b)).toBe(true);
  });
});

describe("different answers", () => {
  test.each(different)("%s ≠ %s", async (a, b) => {
    expect(await sameText(a, b)).toBe(false);
  });
});

describe("where the answer is found", () => {
  test.each<[string, string | undefined]>([
    ["So \\boxed{5}", "5"],
    ["First \\boxed{4}, no: \\boxed{\\frac{1}{2}} is right, I checked 3 times.", "\\frac{1}{2}"],
    ["\\boxed{\\text{yes}}", "\\text{yes}"],
    ["\\boxed{x^{2}}", "x^{2}"],
    ["\\boxed{ \\{1, 2\\} }", "\\{1, 2\\}"],
    ["\\boxed{5", "5"],
    ["#### 12\nand some more words", "12"],
    ["#### 12\nWait. #### 13", "13"],
    ["The answer is 7. I am sure.", "7"],
    ["Answer: 3.5", "3.5"],
    ["**Answer:** 12", "12"],
    ["12 apples and 3 pears make 15", "15"],
    ["It costs $1,250.50 in all", "1,250.50"],
    ["minus three: -3.", "-3"],
    ["no number here", undefined],
    ["", undefined],
  ])("%j → %j", (text, expected) => {
    expect(extractAnswer(text)?.text).toBe(expected);
  });

  test("a text that goes on for long after the answer does not hide it", () => {
    expect(extractAnswer(`\\boxed{5} ${"and so on. ".repeat(500)}`)?.text).toBe("5");
  });

  test("only the asked formats count", () => {
    expect(extractAnswer("I got 5", ["boxed"])).toBeUndefined();
    expect(extractAnswer("\\boxed{4} #### 5", ["hash", "boxed"])).toEqual({ format: "hash", text: "5" });
  });
});

describe("the grader", () => {
  const grade = (completion: string, row: Record<string, unknown> = { answer: "#### 5" }, options = {}) =>
    mathGrader({ answer: "answer", ...options }).grade({
      prompt: [],
      completion,
      row: row as never,
      signal: new AbortController().signal,
    });

  test("says what it found and in which form", async () => {
    expect(await grade("\\boxed{5}")).toEqual({
      reward: 1,
      metrics: { extracted: 1, "format/boxed": 1, "format/hash": 0, "format/answer_is": 0, "format/last_number": 0 },
      note: "5",
    });
    expect(await grade("I do not know")).toMatchObject({ reward: 0, metrics: { extracted: 0 } });
  });

  test("takes numbers as they stand in JSON", async () => {
    expect((await grade("5", { answer: 5 })).reward).toBe(1);
    expect((await grade("5.1", { answer: 5 })).reward).toBe(0);
  });

  test("a row without the answer is an error, not a 0", async () => {
    await expect(grade("5", { solution: "5" })).rejects.toThrow(/RL7101.*solution/);
  });

  test("hostile texts end quickly", async () => {
    for (const text of [
      "(".repeat(5000),
      "{".repeat(5000),
      "9".repeat(100_000),
      `\\boxed{${"x+".repeat(2000)}}`,
      "1,".repeat(3000),
      "\\frac".repeat(2000),
      "^".repeat(3000),
    ]) {
      const { reward } = await grade(text);
      expect(reward).toBe(0);
    }
  });
});
