import { describe, expect, test } from "vitest";
import type { Change } from "../../../src/change.ts";
import { renderMarkdownFailure, renderMarkdownPlan } from "../../../src/cli/views/markdown.ts";
import { diagnostic } from "../../../src/diagnostic.ts";

const HASH = `sha256:${"ab".repeat(32)}` as const;
const OTHER = `sha256:${"cd".repeat(32)}` as const;

const replaced: Change = {
  address: "run.agent",
  kind: "run",
  action: "replace",
  reasons: ["replaced because learning_rate changed"],
  attributes: [
    { path: "learning_rate", before: 0.003, after: 0.001, rule: "replace" },
    { path: "dataset.content", before: HASH, after: OTHER, rule: "replace", because: "dataset.rows" },
    { path: "name", after: "a ``` b | c", rule: "update" },
  ],
  drift: [{ message: "its checkpoint *40* is gone @everyone", mend: "none" }],
  before: { hash: HASH, incarnation: 1 },
  after: { hash: OTHER, incarnation: 1 },
  dependsOn: [],
  estimate: { steps: 88, tokens: 43_100, seconds: 8, gpuHours: 1.5, cost: 3 },
};

const created: Change = {
  address: "server.gpu",
  kind: "server",
  action: "create",
  reasons: ["it does not exist yet"],
  attributes: [
    { path: "model", after: "<img src=x>", rule: "replace" },
    { path: "api_key", after: { $secret: "KEY" }, rule: "update" },
  ],
  drift: [],
  after: { hash: HASH, incarnation: 1 },
  dependsOn: [],
};

const unchanged: Change = { ...created, address: "server.other", action: "none", reasons: [], attributes: [] };

const queues = [{ address: "server.gpu", slots: 1, waves: [["run.agent"], ["run.next"]] }] as const;

test("a plan, its warnings and its queues", async () => {
  const text = renderMarkdownPlan({
    project: "support",
    changes: [created, replaced, unchanged],
    queues,
    diagnostics: [diagnostic("RL2006", "A warning.", { severity: "warning", address: "run.agent" })],
  });
  await expect(text).toMatchFileSnapshot("../../golden/views/plan.md");
});

test("nothing to do is one line", () => {
  const text = renderMarkdownPlan({ project: "p", changes: [unchanged], queues: [], diagnostics: [] });
  expect(text).toBe("## Plan for `p`\n\n**No changes.** 1 resource is as the spec says.\n");
});

describe("whatever the size", () => {
  test.each([10, 300, 5000])("%i changes fit into a comment, and what does not is counted", (count) => {
    const changes = Array.from({ length: count }, (_, i): Change => ({ ...replaced, address: `run.agent-${i}` }));
    const text = renderMarkdownPlan({ project: "p", changes, queues: [], diagnostics: [] });
    expect(text.length).toBeLessThanOrEqual(65_536);
    expect(text.includes("left out")).toBe(count > 10);
    expect(text.match(/<details>/g)?.length ?? 0).toBe(text.match(/<\/details>/g)?.length ?? 0);
    expect((text.match(/^`{3,}/gm) ?? []).length % 2).toBe(0);
    const rows = text.match(/^\| `-\/\+` \|/gm)?.length ?? 0;
    const leftOut = Number(/_(\d+) resources in the table/.exec(text)?.[1] ?? 0);
    expect(rows + leftOut).toBe(count);
  });
});

test("without a plan, what has to be mended", () => {
  const text = renderMarkdownFailure([diagnostic("RL1101", "A run has no field `x`.", { address: "run.agent" })]);
  expect(text).toContain("There is no plan");
  expect(text).toContain("error[RL1101]");
});
