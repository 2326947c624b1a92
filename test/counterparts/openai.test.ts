/** The official OpenAI client for Python against the endpoint. Skipped by name where it is not installed (`setup` installs it). */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type PolicyEndpoint, servePolicy } from "../servers/openai/endpoint.ts";
import { openaiPython, runCommand } from "./environment.ts";

const script = new URL("openai_client.py", import.meta.url);
const checks = [...readFileSync(script, "utf8").matchAll(/^def check_(\w+)/gm)].map(([, name]) => name as string);

interface Outcome {
  readonly check: string;
  readonly ok: boolean;
  readonly error?: string;
}

let endpoint: PolicyEndpoint | undefined;
let outcomes: readonly Outcome[] = [];
let stderr = "";
beforeAll(async () => {
  if (openaiPython === undefined) return;
  const call = '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n</tool_call>';
  endpoint = await servePolicy((prompt) => (prompt.includes("user\ncall") ? call : "Grüezi 🙂 ".repeat(9)));
  const run = await runCommand(openaiPython, [script.pathname, endpoint.url], { timeoutMs: 280_000 });
  outcomes = run.stdout
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as Outcome);
  stderr = run.stderr;
});
afterAll(() => endpoint?.close());

test.skipIf(openaiPython === undefined).each(checks)("openai for Python: %s", (check) => {
  const outcome = outcomes.find((one) => one.check === check);
  expect(outcome, `the check did not run:\n${stderr.slice(-3000)}`).toBeDefined();
  expect(outcome?.ok, outcome?.error).toBe(true);
  expect(endpoint?.faults).toEqual([]);
});
