import { expect, test } from "vitest";
import { isRecoveryFile, RECOVERY_VERSION } from "../../src/state/recovery.ts";

const FILE = {
  formatVersion: RECOVERY_VERSION,
  expect: 0,
  draft: {
    address: "run.a",
    status: "ready",
    hash: `sha256:${"0".repeat(64)}`,
    incarnation: 1,
    attributes: {},
    dependsOn: [],
    results: {},
  },
};

test("a whole recovery file", () => {
  expect(isRecoveryFile(FILE)).toBe(true);
});

test.each<[string, unknown]>([
  ["null", null],
  ["a list", []],
  ["another version", { ...FILE, formatVersion: 2 }],
  ["no version to expect", { ...FILE, expect: undefined }],
  ["no draft", { ...FILE, draft: null }],
  ["a path for an address", { ...FILE, draft: { ...FILE.draft, address: "run.../../x" } }],
  ["no generation", { ...FILE, draft: { ...FILE.draft, hash: "x" } }],
  ["an unknown status", { ...FILE, draft: { ...FILE.draft, status: "fine" } }],
  ["no results", { ...FILE, draft: { ...FILE.draft, results: undefined } }],
])("%s is none", (_, value) => {
  expect(isRecoveryFile(value)).toBe(false);
});
