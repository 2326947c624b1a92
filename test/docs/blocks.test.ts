/** The test of pages, tested: what it would miss would be missed silently. */
import { describe, expect, test } from "vitest";
import { blocksOf, consoleSteps, isTested, matcherOf } from "./blocks.ts";

const page = [
  "Text.",
  "<!-- test: run mkdir a -->",
  "<!-- test: exit 1 -->",
  "```sh",
  "false",
  "```",
  "```yaml",
  "a: 1",
  "```",
  "<!-- test: file b.yaml -->",
  "````yaml",
  "```",
  "````",
  "<!-- test: skip needs a GPU -->",
  "```sh",
  "train",
  "```",
].join("\n");

describe("blocks", () => {
  test("have their comments, and only their own", () => {
    const [failing, shown, file, skipped] = blocksOf(page);
    expect(failing).toMatchObject({ line: 4, text: "false\n", setup: ["mkdir a"], exit: 1 });
    expect(shown).toMatchObject({ exit: 0, setup: [], isOutput: false });
    expect([failing!, shown!].map(isTested)).toEqual([true, false]);
    expect(file).toMatchObject({ file: "b.yaml", text: "```\n" });
    expect(skipped).toMatchObject({ skip: "needs a GPU" });
  });

  test("a comment that says nothing known is a fault", () => {
    expect(() => blocksOf("<!-- test: skipp x -->\n```sh\n```")).toThrow("skipp");
  });

  test("commands of a console with what they print", () => {
    expect(consoleSteps("$ a\nx\ny\n$ b\n")).toEqual([
      { command: "a", output: "x\ny" },
      { command: "b", output: "" },
    ]);
  });
});

describe("what is shown", () => {
  const found = (expected: string, printed: string) => matcherOf(expected).test(printed);

  test.each([
    ["as it is", "a + b (c)", "x\na + b (c)  \ny\n", true],
    ["another word", "a b", "a c\n", false],
    ["a line missing", "a\nb", "a\n\nb\n", false],
    ["any line between", "a\n…\nb", "a\nx\ny\nb\n", true],
    ["none between", "a\n…\nb", "a\nb\n", true],
    ["the wrong order", "b\n…\na", "a\nb\n", false],
    ["anything in a line", "run … done", "run 12 done\n", true],
    ["times and rates", "step 1, 12 s, 3.1k tokens/s", "step 1, 7.5 s, 940 tokens/s\n", true],
    ["other numbers", "step 1, 12 s", "step 2, 12 s\n", false],
    ["addresses", "at http://127.0.0.1:1234 now", "at http://127.0.0.1:9 now\n", true],
  ])("%s", (_, expected, printed, isFound) => {
    expect(found(expected, printed)).toBe(isFound);
  });
});
