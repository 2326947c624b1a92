/** `rlcli sample --input`: order, resumption, and what is told of questions that got no answer. */
import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { cacheFolder } from "../servers/embedded/server.ts";
import { type PolicyServer, startPolicyServer } from "../support/policy-server.ts";

const program = fileURLToPath(new URL("../../bin/rlcli.js", import.meta.url));
let policy: PolicyServer;
let folder: string;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-batch-"));
  policy = await startPolicyServer({ answer: (prompt) => `re ${/q\d+/.exec(prompt)?.[0]}` });
});
afterEach(async () => {
  await policy.stop();
  rmSync(folder, { recursive: true, force: true });
});

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

function batch(args: readonly string[], input = "in.jsonl"): Promise<Ran> {
  const where = ["--base-url", policy.url, "--model", "builtin:tiny", "--input", input, "--max-tokens", "20"];
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      [program, "sample", ...where, ...args],
      { cwd: folder, env: { ...process.env, RLCLI_CACHE: cacheFolder } },
      (error, out, err) => resolve({ code: error ? (error.code as unknown as number) : 0, out, err }),
    );
  });
}

const write = (lines: readonly object[]) =>
  writeFileSync(join(folder, "in.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
const parse = (text: string) =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));

test("answers come in the order of the questions, with their ids", async () => {
  write([
    { prompt: "q0", id: "a" },
    { messages: [{ role: "user", content: "q1" }] },
    ...Array.from({ length: 30 }, (_, i) => ({ prompt: `q${i + 2}` })),
  ]);
  const { code, out, err } = await batch(["--concurrency", "4"]);
  expect(code, err).toBe(0);
  const rows = parse(out);
  expect(rows.map((row) => row.text)).toEqual(Array.from({ length: 32 }, (_, i) => `re q${i}`));
  expect(rows[0]).toMatchObject({
    formatVersion: 1,
    index: 0,
    id: "a",
    sample: 0,
    stopReason: "stop",
    answerTokens: 5,
  });
  expect(rows[1]).not.toHaveProperty("id");
});

test("the file is there only once it is whole; the same command asks what is left, another one all", async () => {
  write(Array.from({ length: 6 }, (_, i) => ({ prompt: `q${i}` })));
  let asked = 0;
  policy.server.fault = ({ path }) =>
    path === "/asample" && ++asked > 3 ? { type: "answer", status: 401, body: { detail: "no" } } : undefined;
  const first = await batch(["-o", "out.jsonl", "--concurrency", "1"]);
  expect(first.code).toBe(1);
  expect(first.err).toContain("RL5013");
  expect(existsSync(join(folder, "out.jsonl"))).toBe(false);
  const [partial] = readdirSync(folder).filter((name) => name.endsWith(".partial"));
  const kept = readFileSync(join(folder, partial!), "utf8");
  expect(kept.trim().split("\n")).toHaveLength(3);
  // A crash in the middle of a line.
  writeFileSync(join(folder, partial!), `${kept}{"formatVersion":1,"ind`);
  policy.server.fault = () => undefined;
  const before = policy.prompts.length;
  const second = await batch(["-o", "out.jsonl", "--concurrency", "1"]);
  expect(second.code, second.err).toBe(0);
  expect(policy.prompts.length - before).toBe(3);
  const rows = parse(readFileSync(join(folder, "out.jsonl"), "utf8"));
  expect(rows.map((row) => row.text)).toEqual([0, 1, 2, 3, 4, 5].map((i) => `re q${i}`));
  expect(readdirSync(folder).filter((name) => name.endsWith(".partial"))).toEqual([]);
  expect((await batch(["-o", "out.jsonl"])).err).toContain("RL9004");
});

test("a question that the server refuses is told in its line; several answers have seeds of their own", async () => {
  write([{ prompt: "q0" }, { prompt: "q1" }]);
  policy.server.fault = ({ path, text }) =>
    path === "/asample" && text.includes(String([..."q1"].map((c) => c.charCodeAt(0)).join(",")))
      ? { type: "answer", status: 400, body: { detail: "too long" } }
      : undefined;
  const { code, out, err } = await batch(["-n", "2", "--seed", "5"]);
  expect(code).toBe(1);
  expect(err).toContain("1 of 2 questions got no answer");
  const rows = parse(out);
  expect(rows.map((row) => [row.index, row.sample, "error" in row])).toEqual([
    [0, 0, false],
    [0, 1, false],
    [1, 0, true],
    [1, 1, true],
  ]);
  expect(rows[2].error).toMatchObject({ code: "RL5013", detail: expect.stringContaining("too long") });
  const seeds = policy.server.requests
    .filter(({ path }) => path === "/asample")
    .map(({ body }) => body.sampling_params.seed);
  expect([...seeds].sort()).toEqual([5, 6, 7, 8]);
});

test("all faults of the file are told before anything is asked", async () => {
  writeFileSync(join(folder, "in.jsonl"), '{"prompt": 3}\nnot json\n\n{"messages": []}\n{"prompt": "fine"}\n');
  const { code, err } = await batch([]);
  expect(code).toBe(1);
  expect(err).toMatch(/Line 1 of in\.jsonl[\s\S]*Line 2[\s\S]*Line 4/);
  expect(policy.prompts).toEqual([]);
  const said = (role: string) => `{"messages": [{"role": "${role}", "content": "x"}]}`;
  writeFileSync(join(folder, "in.jsonl"), `${said("usr")}\n${said("assistant")}\n{"prompt": "a", "messages": []}\n`);
  expect((await batch([])).err).toMatch(/Line 1[\s\S]*"usr"[\s\S]*Line 2[\s\S]*neither[\s\S]*Line 3[\s\S]*both/);
  expect(policy.prompts).toEqual([]);
  expect((await batch([], "absent.jsonl")).err).toContain("RL9009");
});
