/** Progress of an apply on a terminal and in plain lines. */
import { describe, expect, test } from "vitest";
import type { Address } from "../../../src/address.ts";
import { TextProgress } from "../../../src/cli/views/progress.ts";
import { createStyle } from "../../../src/cli/views/style.ts";
import { widthOf } from "../../../src/cli/views/text.ts";
import type { RunEvent, SandboxCount } from "../../../src/run-record.ts";

const address = "run.agent" as Address;
const at = "2026-12-01T00:00:00.000Z";

const step = (number: number, sandboxes?: SandboxCount): RunEvent => ({
  t: "progress",
  at,
  step: number,
  steps: 10,
  loss: 0.1,
  reward: 0.412,
  tokensPerSecond: 120,
  etaSeconds: 180,
  ...(sandboxes ? { sandboxes } : {}),
});
const now = (inUse: number): RunEvent => ({ t: "sandboxes", at, step: 4, sandboxes: { inUse, places: 8 } });

/** What is written for events that come ten seconds apart. */
function shown({ isTTY = false, columns = 100 }, ...events: readonly RunEvent[]): readonly string[] {
  const written: string[] = [];
  let time = 0;
  const out = { write: (text: string) => void written.push(text), isTTY, columns };
  const view = new TextProgress(out, createStyle(false), { now: () => (time += 10_000) });
  for (const event of events) view.on({ type: "change.run", at, address, event });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: what moves the cursor
  return written.map((text) => text.replace(/^\u001b.*$/, "").trimEnd()).filter((line) => line !== "");
}

describe("sandboxes", () => {
  test("in plain lines a step tells the most that there were at once, and nothing is told in between", () => {
    expect(shown({}, now(3), step(3, { inUse: 7, places: 8 }), now(2), now(5))).toEqual([
      "run.agent step 3/10  reward 0.412  120 tokens/s  3 min left  7/8 sandboxes",
    ]);
  });

  test("on a terminal they are shown as they are now", () => {
    const lines = shown(
      { isTTY: true },
      { t: "phase", at, phase: "training" },
      now(3),
      step(3, { inUse: 7, places: 8 }),
      now(5),
    );
    expect(lines).toEqual([
      "run.agent: training",
      "run.agent: training  3/8 sandboxes",
      `run.agent ${"█".repeat(6)}${"░".repeat(14)} step 3/10  reward 0.412  120 tokens/s  3 min left  3/8 sandboxes`,
      `run.agent ${"█".repeat(6)}${"░".repeat(14)} step 3/10  reward 0.412  120 tokens/s  3 min left  5/8 sandboxes`,
    ]);
  });

  test("not where a run uses none", () => {
    expect(shown({}, step(3)).join()).not.toContain("sandboxes");
    expect(shown({ isTTY: true }, step(3)).join()).not.toContain("sandboxes");
  });
});

test.each([60, 80, 85, 90, 200])("at %d columns the bar gives way to the words, and no line wraps", (columns) => {
  const [line = ""] = shown({ isTTY: true, columns }, now(5), step(3));
  expect(widthOf(line)).toBeLessThan(columns);
  expect(line.includes("█")).toBe(columns > 80);
  if (columns >= 80) expect(line).toContain("5/8 sandboxes");
});
