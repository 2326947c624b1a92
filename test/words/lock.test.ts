// rlcli.lock: what is written, what may be added by whom, and what a damaged one says.
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Lock, type LockEntry } from "../../src/lock.ts";

let path: string;
beforeEach(() => {
  path = join(mkdtempSync(join(tmpdir(), "rlcli-lock-")), "rlcli.lock");
});
afterEach(() => rmSync(join(path, ".."), { recursive: true, force: true }));

const entry = (commit: string): LockEntry => ({
  type: "hub-dataset",
  id: "openai/gsm8k",
  commit,
  files: [
    { path: "main/train-00000-of-00001.parquet", digest: "sha256:00", bytes: 12 },
    { path: "é", digest: "sha256:11", bytes: 0 },
  ],
});

test("entries come back, and the file reads well", async () => {
  new Lock(path, "add").add("hf://openai/gsm8k/main/train", entry("e53f048"));
  new Lock(path, "add").add("hf://a/b", { type: "other", files: [] });
  const lock = new Lock(path, "locked");
  expect(lock.get("hf://openai/gsm8k/main/train")).toEqual(entry("e53f048"));
  expect([...lock.entries.keys()]).toEqual(["hf://a/b", "hf://openai/gsm8k/main/train"]);
  await expect(readFileSync(path, "utf8")).toMatchFileSnapshot("../golden/lock/two.json");
});

test("the order of adding does not show", () => {
  const names = ["hf://b/b", "hf://a/a", "hf://c/c"];
  const texts = [names, [...names].reverse()].map((order) => {
    rmSync(path, { force: true });
    for (const name of order) new Lock(path, "add").add(name, entry(name));
    return readFileSync(path, "utf8");
  });
  expect(texts[0]).toBe(texts[1]);
});

test("what another command added meanwhile stays, and what is there is not moved", () => {
  const mine = new Lock(path, "add");
  expect(mine.get("hf://a/a")).toBeUndefined();
  new Lock(path, "add").add("hf://theirs/x", entry("theirs"));
  mine.add("hf://a/a", entry("mine"));
  expect(new Lock(path, "locked").get("hf://theirs/x")).toEqual(entry("theirs"));
});

test("locked: what is there is read, what is missing is RL2006, and nothing is written", () => {
  new Lock(path, "add").add("hf://a/a", entry("1"));
  const before = statSync(path).mtimeMs;
  const lock = new Lock(path, "locked");
  expect(lock.get("hf://a/a")).toBeDefined();
  expect(() => lock.allowAdding("hf://b/b")).toThrow(/RL2006.*hf:\/\/b\/b.*rlcli lock/);
  expect(() => lock.add("hf://b/b", entry("2"))).toThrow("RL2006");
  expect(statSync(path).mtimeMs).toBe(before);
});

test("edited: nothing is written before it is saved", () => {
  new Lock(path, "add").add("hf://a/a", entry("1"));
  const lock = new Lock(path, "edit");
  lock.drop(["hf://a/a"]);
  lock.add("hf://a/a", entry("2"));
  expect(new Lock(path, "locked").get("hf://a/a")).toEqual(entry("1"));
  lock.save();
  expect(new Lock(path, "locked").get("hf://a/a")).toEqual(entry("2"));
});

describe("a file that cannot be read is RL2005", () => {
  test.each([
    ["not JSON", "nonsense", /is not JSON/],
    ["a merge conflict", '{\n<<<<<<< HEAD\n  "a": 1\n=======\n', /merge conflict/],
    ["a newer format", '{"formatVersion": 2, "entries": {}}', /format 2, this rlcli reads 1/],
    ["something else", "[]", /not what rlcli writes/],
    ["null", "null", /not what rlcli writes/],
    ["entries of no type", '{"formatVersion": 1, "entries": {"a": {}}}', /not what rlcli writes/],
  ])("%s", (_, text, message) => {
    writeFileSync(path, text);
    expect(() => new Lock(path, "add").get("hf://a/a")).toThrow(message);
    expect(() => new Lock(path, "add").get("hf://a/a")).toThrow("RL2005");
    expect(() => new Lock(path, "add").add("hf://a/a", entry("1"))).toThrow("RL2005");
    expect(readFileSync(path, "utf8")).toBe(text);
  });
});

test("a folder that cannot be written to is RL2007", () => {
  expect(() => new Lock("/proc/rlcli.lock", "add").add("hf://a/a", entry("1"))).toThrow("RL2007");
});
