import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LineTail } from "../../src/tail.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-tail-"));
  path = join(folder, "log.txt");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test("gives each line once and whole, wherever a write ended, also within a character", () => {
  const tail = new LineTail(path);
  expect(tail.read()).toBe("");
  const bytes = Buffer.from("grün\n蓝\n");
  let read = "";
  for (const byte of bytes) {
    appendFileSync(path, Buffer.of(byte));
    const lines = tail.read();
    expect(lines === "" || lines.endsWith("\n")).toBe(true);
    read += lines;
  }
  expect(read).toBe("grün\n蓝\n");
  expect(tail.read(true)).toBe("");
});

test("begins anew where the file was put aside for a shorter one", () => {
  writeFileSync(path, "one\ntwo\n");
  const tail = new LineTail(path);
  tail.read();
  writeFileSync(path, "three\n");
  expect(tail.read()).toBe("three\n");
});

test("gives what has only begun once nobody writes any more", () => {
  writeFileSync(path, "whole\nbegun");
  const tail = new LineTail(path);
  expect([tail.read(), tail.read(), tail.read(true), tail.read(true)]).toEqual(["whole\n", "", "begun", ""]);
});
