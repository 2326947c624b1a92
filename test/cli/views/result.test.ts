import { expect, test } from "vitest";
import { renderResult } from "../../../src/cli/views/result.ts";
import { createStyle } from "../../../src/cli/views/style.ts";

const NONE = { done: 0, interrupted: 0, failed: 0, skipped: 0, detached: 0, waiting: 0 };

test.each([
  {
    name: "a whole apply",
    counts: { done: 3 },
    words: { wasStopped: false, isDestroy: false },
    line: "Apply complete: 3 done.",
  },
  {
    name: "an apply of which something failed",
    counts: { done: 1, failed: 1, skipped: 2 },
    words: { wasStopped: false, isDestroy: false },
    line: "Apply incomplete: 1 done, 1 failed, 2 not started. Nothing that was saved is lost; `rlcli plan` shows what is left, `rlcli apply` goes on.",
  },
  {
    name: "a whole destroy",
    counts: { done: 3 },
    words: { wasStopped: false, isDestroy: true },
    line: "Destroy complete: 3 done.",
  },
  {
    name: "a destroy that failed: an apply would bring back what is gone",
    counts: { failed: 1 },
    words: { wasStopped: false, isDestroy: true },
    line: "Destroy incomplete: 1 failed. `rlcli plan --destroy` shows what is left, `rlcli destroy` goes on.",
  },
  {
    name: "a destroy that was stopped",
    counts: { done: 1, interrupted: 1 },
    words: { wasStopped: true, isDestroy: true },
    line: "Destroy stopped: 1 done, 1 interrupted. `rlcli plan --destroy` shows what is left, `rlcli destroy` goes on.",
  },
])("$name", ({ counts, words, line }) => {
  const result = { counts: { ...NONE, ...counts }, results: new Map(), diagnostics: [] };
  expect(renderResult(result, { isSmoke: false, ...words, style: createStyle(false) })).toBe(`${line}\n`);
});
