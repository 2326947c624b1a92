/** `rlcli import` and `rlcli render` as a user meets them: the bundle in a process of its own. */
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { execa } from "execa";
import { afterAll, describe, expect, test } from "vitest";

const RLCLI = fileURLToPath(new URL("../../bin/rlcli.js", import.meta.url));
const MODEL = fileURLToPath(new URL("../fixtures/tiny-qwen3", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "rlcli-data-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function rlcli(args: readonly string[], options: { input?: string; env?: Record<string, string> } = {}) {
  const env = { NO_COLOR: undefined, FORCE_COLOR: undefined, ...options.env };
  const given = options.input === undefined ? {} : { input: options.input };
  const result = await execa(process.execPath, [RLCLI, ...args], { cwd: folder, reject: false, env, ...given });
  return { code: result.exitCode, out: result.stdout, err: result.stderr };
}

const u = { role: "user", content: "q <|im_end|>" };
const a = { role: "assistant", content: "r" };
const row = JSON.stringify({ messages: [u, a] });
const dump = JSON.stringify({ request: { model: "m", messages: [u] }, response: { choices: [{ message: a }] } });

describe("import", () => {
  test("pipes rows from standard input to standard output, numbers to standard error", async () => {
    const input = `${dump}\nbroken\n${row}\n`;
    const { code, out, err } = await rlcli(["import", "-", "--dedupe", "none"], { input });
    expect({ code, out }).toEqual({ code: 0, out: `${row}\n${row}` });
    // A log's lines are not counted twice unless that is wanted.
    expect((await rlcli(["import", "-"], { input })).out).toBe(row);
    expect(err).toContain("<stdin>:2");
    expect(err).toContain("2 rows from 3 lines (openai)");
  });
  test("writes a file whole, and none where nothing came out", async () => {
    writeFileSync(join(folder, "log.jsonl"), `${dump}\n`);
    expect(await rlcli(["import", "log.jsonl", "-o", "out/rows.jsonl"])).toMatchObject({ code: 0, out: "" });
    expect(readFileSync(join(folder, "out/rows.jsonl"), "utf8")).toBe(`${row}\n`);
    writeFileSync(join(folder, "bad.jsonl"), "{}\n");
    const { code, err } = await rlcli(["import", "bad.jsonl", "-o", "out/other.jsonl"]);
    expect(code).toBe(1);
    expect(err).toContain("RL6004");
    expect(err).toContain("bad.jsonl:1");
    expect(readdirSync(join(folder, "out"))).toEqual(["rows.jsonl"]);
  });
  test("writes through a link, and into a pipe without replacing it", async () => {
    writeFileSync(join(folder, "real.jsonl"), "before");
    symlinkSync("real.jsonl", join(folder, "link.jsonl"));
    expect((await rlcli(["import", "-", "-o", "link.jsonl"], { input: row })).code).toBe(0);
    expect(lstatSync(join(folder, "link.jsonl")).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, "real.jsonl"), "utf8")).toBe(`${row}\n`);
    await execa("mkfifo", ["pipe"], { cwd: folder });
    const [, read] = await Promise.all([
      rlcli(["import", "-", "-o", "pipe"], { input: row }),
      execa("cat", ["pipe"], { cwd: folder }),
    ]);
    expect(read.stdout).toBe(row);
    expect(lstatSync(join(folder, "pipe")).isFIFO()).toBe(true);
  });
  test("numbers as JSON, limits, and what the user got wrong", async () => {
    const { out } = await rlcli(["import", "-", "-o", "n.jsonl", "--limit", "1", "--json"], {
      input: `${row}\n${row}\n`,
    });
    expect(JSON.parse(out)).toMatchObject({ formatVersion: 1, rows: 1 });
    expect((await rlcli(["import", "gone.jsonl"])).err).toContain("RL6001");
    expect((await rlcli(["import", "-", "-f", "csv"], { input: "" })).code).toBe(1);
    expect((await rlcli(["import", "log.jsonl", "-o", "n.jsonl/x"])).err).toContain("RL6006");
  });
  test("a reader that goes away is no failure", async () => {
    const command = `'${process.execPath}' '${RLCLI}' import - 2>err.txt | head -n 1; echo "code \${PIPESTATUS[0]}"`;
    const { stdout } = await execa("bash", ["-c", command], { cwd: folder, input: `${row}\n`.repeat(100_000) });
    expect(stdout).toBe(`${row}\ncode 0`);
    expect(readFileSync(join(folder, "err.txt"), "utf8")).toBe("");
  });
});

describe("render", () => {
  const args = ["render", "--model", MODEL, "--messages", "-"];
  test("marks trained text without colour, paints it with", async () => {
    const plain = await rlcli(args, { input: row });
    expect(plain).toMatchObject({ code: 0, err: "" });
    expect(plain.out).toContain("<|im_start|>user\nq <|im_end|><|im_end|>\n<|im_start|>assistant\n⟦r<|im_end|>⟧");
    const painted = (await rlcli(args, { input: row, env: { FORCE_COLOR: "1" } })).out;
    expect(painted).toContain("\u001b[32mr\u001b[39m");
    expect(painted).not.toContain("⟦");
    expect((await rlcli(args, { input: row, env: { NO_COLOR: "1" } })).out).toBe(plain.out);
  });
  test("--json gives ids and weights, one example a line", async () => {
    const { out } = await rlcli([...args, "--json", "--generation-prompt"], { input: `${row}\n${row}\n` });
    const lines = out.split("\n").map((line) => JSON.parse(line) as { tokens: number[]; weights: number[] });
    expect(lines).toHaveLength(2);
    expect(lines[0]!.tokens.length).toBe(lines[0]!.weights.length);
    expect(lines[0]!.tokens.filter((t) => t === 2)).toHaveLength(2);
  });
  test("a row of a spec's run, rendered as it would be trained", async () => {
    writeFileSync(join(folder, "rows.jsonl"), `${row}\n${row.replace('"r"', '"second"')}\n`);
    writeFileSync(
      join(folder, "rlcli.yaml"),
      `rlcli: 1\nproject: p\nserver: { backend: embedded, model: ${MODEL} }\ndatasets: { d: { source: rows.jsonl } }\nruns: { a: { type: sl, dataset: d, train_on: all } }\n`,
    );
    const { out, code } = await rlcli(["render", "a", "--row", "2"]);
    expect(code).toBe(0);
    expect(out).toContain("⟦user\nq <|im_end|><|im_end|>\n<|im_start|>assistant\nsecond<|im_end|>\n⟧");
    expect((await rlcli(["render", "a", "--row", "3"])).err).toContain("2 rows");
    expect((await rlcli(["render", "b", "--row", "1"])).err).toContain("Did you mean `a`?");
    expect(existsSync(join(folder, ".rlcli"))).toBe(false);
  });
  test.each([
    [["render"], "RL9003"],
    [["render", "--model", MODEL, "--messages", "gone.json"], "RL1001"],
    [["render", "--model", "./gone", "--messages", "-"], "RL5002"],
    [[...args, "--template-kwargs", "3"], "RL9003"],
  ])("%j is a diagnostic", async (command, expected) => {
    const { code, err } = await rlcli(command, { input: row });
    expect(code).toBe(1);
    expect(err).toContain(expected);
  });
  test.each(["", "{", "3", '{"messages": 1}', '[{"content": "x"}]'])(
    "input %j is a diagnostic that shows the shape",
    async (input) => {
      const { code, err } = await rlcli(args, { input });
      expect(code).toBe(1);
      expect(err).toMatch(/RL9003/);
    },
  );
});
