import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import {
  type CheckpointInfo,
  type CheckpointPath,
  checkpointExists,
  checkpointFolder,
  deleteCheckpoint,
  formatCheckpointPath,
  listCheckpoints,
  listRuns,
  parseCheckpointPath,
  readCheckpoint,
  sweepCheckpoints,
  writeCheckpoint,
  writeRun,
} from "../../src/servers/checkpoints.ts";
import { temporaryFolder } from "./embedded/support.ts";

const RUN = "session_ab:train:0";
const PATH: CheckpointPath = { run: RUN, kind: "weights", name: "step-1" };

function infoOf(path: CheckpointPath, changes: Partial<CheckpointInfo> = {}): CheckpointInfo {
  return {
    formatVersion: 1,
    ...path,
    at: "2026-01-01T00:00:00.000Z",
    baseModel: "builtin:tiny",
    lora: null,
    role: "policy",
    step: 1,
    sizeBytes: 3,
    files: {},
    userMetadata: null,
    expiresAt: null,
    ...changes,
  };
}

function write(folder: string, path = PATH, changes: Partial<CheckpointInfo> = {}): void {
  writeCheckpoint(folder, path, (temporary) => {
    writeFileSync(join(temporary, "model.safetensors"), "abc");
    return infoOf(path, changes);
  });
}

test.each([
  ["tinker://session_ab:train:0/weights/step-1", PATH],
  ["tinker://model_12/s1", { run: "model_12", kind: "sampler_weights", name: "s1" }],
  ["tinker://a/external_weights/x", { run: "a", kind: "external_weights", name: "x" }],
  ["tinker://a/other_weights/x", undefined],
  ["tinker://a/weights/..", undefined],
  ["tinker://../weights/x", undefined],
  ["tinker://a/weights/x/y", undefined],
  ["tinker://a", undefined],
  ["tinker:///weights/x", undefined],
  ["/weights/x", undefined],
] as const)("%s", (text, expected) => {
  expect(parseCheckpointPath(text)).toEqual(expected);
});

describe("a checkpoint", () => {
  test("exists from its rename to its deletion", () => {
    const folder = temporaryFolder();
    const text = formatCheckpointPath(PATH);
    expect(checkpointExists(folder, text)).toBe(false);
    write(folder);
    expect(checkpointExists(folder, text)).toBe(true);
    expect(readCheckpoint(folder, PATH)).toEqual(infoOf(PATH));
    expect(deleteCheckpoint(folder, text)).toBe(true);
    expect(deleteCheckpoint(folder, text)).toBe(false);
    expect(checkpointExists(folder, text)).toBe(false);
  });

  test("whose making failed leaves nothing, and what was there stays", () => {
    const folder = temporaryFolder();
    write(folder);
    const failing = () =>
      writeCheckpoint(folder, PATH, (temporary) => {
        writeFileSync(join(temporary, "model.safetensors"), "half");
        throw new Error("disk full");
      });
    expect(failing).toThrow("disk full");
    expect(readCheckpoint(folder, PATH)).toEqual(infoOf(PATH));
    expect(readdirSync(join(checkpointFolder(folder, PATH), ".."))).toEqual(["step-1"]);
  });

  test("that has expired is not there any more", () => {
    const folder = temporaryFolder();
    write(folder, PATH, { expiresAt: "2026-01-01T00:00:01.000Z" });
    expect(checkpointExists(folder, formatCheckpointPath(PATH))).toBe(false);
    expect(listCheckpoints(folder, RUN)).toEqual([]);
    sweepCheckpoints(folder);
    expect(existsSync(checkpointFolder(folder, PATH))).toBe(false);
  });
});

test("what crashes left behind is swept, and is never listed", () => {
  const folder = temporaryFolder();
  write(folder);
  const parent = join(checkpointFolder(folder, PATH), "..");
  mkdirSync(join(parent, "step-2.1-ab.tmp"));
  mkdirSync(join(parent, "step-3"));
  mkdirSync(join(parent, "../unnamed/s-1"), { recursive: true });
  expect(listCheckpoints(folder, RUN).map(({ name }) => name)).toEqual(["step-1"]);
  sweepCheckpoints(folder);
  expect(readdirSync(parent).sort()).toEqual(["step-1", "step-3"]);
  expect(readdirSync(join(parent, "../unnamed"))).toEqual([]);
});

test("runs and checkpoints are listed in order of time", () => {
  const folder = temporaryFolder();
  expect(listRuns(folder)).toEqual([]);
  for (const [run, createdAt] of [
    ["b:train:0", "2026-01-02T00:00:00Z"],
    ["a:train:0", "2026-01-03T00:00:00Z"],
    ["c:train:0", "2026-01-01T00:00:00Z"],
  ] as const)
    writeRun(folder, {
      formatVersion: 1,
      run,
      session: "s",
      baseModel: "m",
      lora: null,
      createdAt,
      userMetadata: null,
    });
  expect(listRuns(folder).map(({ run }) => run)).toEqual(["c:train:0", "b:train:0", "a:train:0"]);
  write(folder, { ...PATH, name: "late" }, { at: "2026-01-05T00:00:00Z" });
  write(folder, { ...PATH, name: "early", kind: "sampler_weights" }, { at: "2026-01-04T00:00:00Z" });
  expect(listCheckpoints(folder, RUN).map(({ name }) => name)).toEqual(["early", "late"]);
});
