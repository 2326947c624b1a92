import { expect, test } from "vitest";
import { decodePlan, encodePlan, PLAN_VERSION, type SavedPlan } from "../../src/plan/file.ts";

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
