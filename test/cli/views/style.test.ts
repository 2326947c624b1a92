import { expect, test } from "vitest";
import { createStyle, wantsColor } from "../../../src/cli/views/style.ts";

test.each([
  ["a terminal", {}, true, true, true],
  ["a pipe", {}, false, true, false],
  ["NO_COLOR", { NO_COLOR: "1" }, true, true, false],
  ["an empty NO_COLOR", { NO_COLOR: "" }, true, true, true],
  ["FORCE_COLOR in a pipe", { FORCE_COLOR: "1" }, false, true, true],
  ["an empty FORCE_COLOR", { FORCE_COLOR: "" }, false, true, true],
  ["FORCE_COLOR=0", { FORCE_COLOR: "0" }, true, true, false],
  ["FORCE_COLOR over NO_COLOR", { FORCE_COLOR: "1", NO_COLOR: "1" }, false, true, true],
  ["--no-color over FORCE_COLOR", { FORCE_COLOR: "1" }, true, false, false],
  ["a dumb terminal", { TERM: "dumb" }, true, true, false],
])("%s", (_, env, isTerminal, color, expected) => {
  expect(wantsColor({ env, isTerminal, color })).toBe(expected);
});

test("a disabled style changes nothing, an enabled one resets what it sets", () => {
  expect(createStyle(false).bold("x")).toBe("x");
  expect(createStyle(true).red("x")).toBe("\u001b[31mx\u001b[39m");
  expect(createStyle(true).red("")).toBe("");
});
