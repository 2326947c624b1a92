/** The official Python SDKs against the embedded server. What is not installed is reported as skipped, by name. */
import { readFileSync, rmSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer, TOKEN } from "../servers/embedded/server.ts";
import { runPython, sdkFolder } from "./environment.ts";

const script = readFileSync(new URL("sdk.py", import.meta.url), "utf8");
const checks = [...script.matchAll(/^def check_(\w+)/gm)].map(([, name]) => name as string);

interface Outcome {
  readonly check: string;
  readonly ok: boolean;
  readonly error?: string;
}

const versions = ["0.24.1", "0.25.0", "0.38.0"];

/** One for all: what it has compiled for one SDK it has for the next. */
let server: TestServer;
beforeAll(async () => {
  if (versions.every((version) => sdkFolder(version) === undefined)) return;
  server = await startTestServer({ slots: 64, bodyLimitBytes: 64_000_000, holdMs: 30_000 });
});
afterAll(async () => {
  if (server === undefined) return;
  await server.server.close();
  rmSync(server.folder, { recursive: true, force: true });
});

describe.each(versions)("tinker %s", (version) => {
  const folder = sdkFolder(version);
  let outcomes: readonly Outcome[] = [];
  let stderr = "";

  beforeAll(async () => {
    if (folder === undefined) return;
    const run = await runPython("sdk.py", [server.server.url, TOKEN], { pythonPath: folder, timeoutMs: 280_000 });
    outcomes = run.stdout
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Outcome);
    stderr = run.stderr;
  }, 300_000);

  test.skipIf(folder === undefined).each(checks)("%s", (check) => {
    const outcome = outcomes.find((one) => one.check === check);
    expect(outcome, `the check did not run:\n${stderr.slice(-3000)}`).toBeDefined();
    expect(outcome?.ok, outcome?.error).toBe(true);
  });

  test.skipIf(folder === undefined)("no fault of the server's own", () => {
    expect(server.faults).toEqual([]);
  });
});
