/** Who follows a worker: its events as they are written, also by one that begins by cutting off what a crash tore. */
import { type ChildProcess, spawn } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { JsonLinesFile } from "../../src/files.ts";
import { attachWorker, EventTail, eventsOffset } from "../../src/kinds/run/attach.ts";
import { isAlive, processIdentity } from "../../src/process.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-attach-"));
  path = join(folder, "events.jsonl");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const phase = (name: string) => ({ t: "phase", phase: name, at: "2026-01-01T00:00:00.000Z" }) as const;

test("lines come once each, in order, and only when they are whole", () => {
  const tail = new EventTail(path, 0);
  expect(tail.read()).toEqual([]);
  const text = `{"formatVersion":1}\n${JSON.stringify(phase("ö"))}\n${JSON.stringify(phase("two"))}\n`;
  const bytes = Buffer.from(text);
  const seen = [];
  for (let at = 0; at < bytes.length; at += 1) {
    appendFileSync(path, bytes.subarray(at, at + 1));
    seen.push(...tail.read());
  }
  expect(seen).toEqual([phase("ö"), phase("two")]);
});

test("of a file whose torn end is cut off later nothing is missed", () => {
  const before = new JsonLinesFile(path);
  before.append(phase("old"));
  before.close();
  appendFileSync(path, '{"t":"phase","phase":"to');
  const fromHere = new EventTail(path, eventsOffset(folder));
  const fromStart = new EventTail(path, 0);
  expect([fromHere.read(), fromStart.read()]).toEqual([[], [phase("old")]]);
  const next = new JsonLinesFile(path);
  next.append(phase("new"));
  next.close();
  expect([fromHere.read(), fromStart.read()]).toEqual([[phase("new")], [phase("new")]]);
});

test("where there is nothing yet, all that comes is new", () => {
  expect(eventsOffset(folder)).toBe(0);
  writeFileSync(path, "");
  expect(eventsOffset(folder)).toBe(0);
});

test("a worker is asked to stop only once it listens", async () => {
  const status = join(folder, "worker.json");
  // Deaf, that is dead by the first signal, until it has written its status.
  const program = `
    const { writeFileSync } = require("node:fs");
    const ready = () => {
      process.on("SIGTERM", () => {
        writeFileSync(process.argv[1], JSON.stringify({ process: { pid: process.pid }, end: { status: "interrupted", step: 3 } }));
        process.exit(1);
      });
      writeFileSync(process.argv[1], JSON.stringify({ process: { pid: process.pid } }));
      setInterval(() => {}, 1000);
    };
    setTimeout(ready, 700);`;
  const child: ChildProcess = spawn(process.execPath, ["-e", program, status]);
  try {
    const [stop, kill] = [AbortSignal.abort(), new AbortController().signal];
    const identity = processIdentity(child.pid as number);
    const end = await attachWorker(folder, child.pid as number, { stop, kill, from: 0, onEvent: () => {} });
    expect(end).toEqual({ status: "interrupted", step: 3 });
    expect(identity && isAlive(identity)).toBe(false);
  } finally {
    child.kill("SIGKILL");
  }
});
