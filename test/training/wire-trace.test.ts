import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { WireTrace } from "../../src/training/wire-trace.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-wire-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const at = "2026-12-01T00:00:00.000Z";
const now = () => new Date(at);
const exchange = (seq: number) => ({
  method: "POST",
  path: "/api/v1/asample",
  attempt: 1,
  status: 200,
  ms: 1.5,
  sentBytes: 10,
  receivedBytes: 20,
  seq,
});
const lines = (name: string) =>
  readFileSync(join(folder, name), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

test("lines are written together, and those that are left at the end; another process goes on after them", () => {
  const trace = new WireTrace(join(folder, "wire.jsonl"), now);
  trace.add(exchange(1));
  expect(readdirSync(folder)).toEqual([]);
  trace.close();
  trace.add(exchange(9));
  const next = new WireTrace(join(folder, "wire.jsonl"), now);
  next.add(exchange(2));
  next.close();
  expect(lines("wire.jsonl")).toEqual([{ formatVersion: 1 }, { at, ...exchange(1) }, { at, ...exchange(2) }]);
});

test("it stays within two files, of which the newer holds what came last", () => {
  const mostBytes = 100_000;
  const trace = new WireTrace(join(folder, "wire.jsonl"), now, mostBytes);
  for (let seq = 1; seq <= 5000; seq += 1) trace.add(exchange(seq));
  trace.close();
  expect(readdirSync(folder).sort()).toEqual(["wire.1.jsonl", "wire.jsonl"]);
  for (const name of readdirSync(folder)) {
    expect(statSync(join(folder, name)).size).toBeLessThanOrEqual(mostBytes + 100);
    expect(lines(name)[0]).toEqual({ formatVersion: 1 });
  }
  const [older, newer] = [lines("wire.1.jsonl"), lines("wire.jsonl")];
  expect(newer.at(-1).seq).toBe(5000);
  expect(older.at(-1).seq + 1).toBe(newer[1].seq);
});

test("a folder that takes nothing harms nobody", () => {
  const trace = new WireTrace(join(folder, "gone/wire.jsonl"), now);
  for (let seq = 0; seq < 300; seq += 1) trace.add(exchange(seq));
  trace.close();
  expect(readdirSync(folder)).toEqual([]);
});
