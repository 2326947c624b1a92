import { expect, test } from "vitest";
import type { Change } from "../../src/change.ts";
import { checkStale, decodePlan, encodePlan, PLAN_VERSION, type SavedPlan } from "../../src/plan/file.ts";

const plan: SavedPlan = {
  formatVersion: PLAN_VERSION,
  rlcli: "0.1.0",
  createdAt: "2026-01-01T00:00:00.000Z",
  project: "p",
  options: { files: ["rlcli.yaml"], variables: {}, variableFiles: [], targets: [], replace: [], destroy: false },
  inputs: [],
  records: { "run.a": 2 },
  changes: [],
};

test("what was saved is read again", () => {
  expect(decodePlan(encodePlan(plan), "plan.bin")).toEqual(plan);
});

test.each([
  ["an edit", encodePlan(plan).replace('"run.a": 2', '"run.a": 3'), "was edited"],
  ["a field left out", JSON.stringify({ ...JSON.parse(encodePlan(plan)), options: undefined }), "was edited"],
  ["another version", encodePlan(plan).replace('"formatVersion": 1', '"formatVersion": 9'), "plan format 9"],
  ["half a file", encodePlan(plan).slice(0, 100), "does not hold JSON"],
  ["other JSON", "{}", "not a plan written by rlcli"],
  ["no object", "null", "not a plan written by rlcli"],
])("%s is refused", (_, text, words) => {
  expect(() => decodePlan(text, "plan.bin")).toThrow(words);
});

test("a stale plan names the files that changed as somebody in the folder would", () => {
  const digest = (letter: string) => `sha256:${letter.repeat(64)}` as const;
  const file = (path: string, letter: string) => ({ type: "file", path, digest: digest(letter) }) as const;
  const before = [
    file("/home/me/project/data/a.jsonl", "a"),
    file("/home/me/project/kept.jsonl", "b"),
    file("/srv/b.jsonl", "c"),
    file("hf://owner/set", "d"),
    { type: "env", name: "NAME", digest: digest("e") } as const,
  ];
  const inputs = before.map((input, at) => (at === 1 ? input : { ...input, digest: digest("f") }));
  const basis = { lineage: undefined, records: new Map(), inputs, changes: [], cwd: "/home/me/project" };
  const [stale] = checkStale({ ...plan, records: {}, inputs: before }, basis);
  expect(stale?.detail).toContain("changed: data/a.jsonl; /srv/b.jsonl; hf://owner/set; environment variable NAME.");
});

test("a plan of what would be something else by now is stale though no file changed; how far a run is does not matter", () => {
  const change = (hash: string, action: Change["action"]): Change => ({
    address: "run.b",
    kind: "run",
    action,
    reasons: [],
    attributes: [],
    drift: [],
    after: { hash: `sha256:${hash.repeat(64)}`, incarnation: 1 },
    dependsOn: ["run.a"],
  });
  const basis = { lineage: undefined, records: new Map(), inputs: [], cwd: "/" };
  const saved = { ...plan, records: {}, changes: [change("a", "create")] };
  expect(checkStale(saved, { ...basis, changes: [change("a", "resume")] })).toEqual([]);
  const [stale] = checkStale(saved, { ...basis, changes: [change("b", "create")] });
  expect(stale).toMatchObject({ code: "RL2002", detail: expect.stringContaining("changed: what run.b is to be.") });
});
