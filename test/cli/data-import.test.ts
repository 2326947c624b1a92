/** `rlcli import` with its rules, as a user meets them: the bundle in a process of its own. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { execa } from "execa";
import { afterAll, describe, expect, test } from "vitest";

const RLCLI = fileURLToPath(new URL("../../bin/rlcli.js", import.meta.url));
const MODEL = fileURLToPath(new URL("../fixtures/tiny-qwen3", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "rlcli-import-test-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function rlcli(args: readonly string[], input?: string | Uint8Array) {
  const given = input === undefined ? {} : { input };
  const env = { NO_COLOR: undefined, FORCE_COLOR: undefined };
  const result = await execa(process.execPath, [RLCLI, ...args], { cwd: folder, reject: false, env, ...given });
  return { code: result.exitCode, out: result.stdout, err: result.stderr };
}

const row = (question: string, answer = "r", more: object = {}) =>
  JSON.stringify({
    messages: [
      { role: "user", content: question },
      { role: "assistant", content: answer },
    ],
    ...more,
  });

describe("bad lines", () => {
  const input = `${row("1")}\n{"key": "sk-${"a1B2".repeat(8)}", oops\n${row("2")}\n{"messages": [}\n`;
  test("are skipped with a warning that names place and excerpt, without secrets", async () => {
    const { code, out, err } = await rlcli(["import", "-"], input);
    expect({ code, out }).toEqual({ code: 0, out: `${row("1")}\n${row("2")}` });
    expect(err).toContain("RL6005");
    expect(err).toContain("<stdin>:2:48");
    expect(err).toContain("<stdin>:4:15");
    expect(err).toContain("oops");
    expect(err).not.toContain("a1B2");
  });
  test("--strict fails at the first and leaves no file, --max-errors after so many", async () => {
    const strict = await rlcli(["import", "-", "--strict", "-o", "strict.jsonl"], input);
    expect(strict.code).toBe(1);
    expect(strict.err).toContain("RL6014");
    expect(readdirSync(folder)).not.toContain("strict.jsonl");
    expect((await rlcli(["import", "-", "--max-errors", "2"], input)).code).toBe(0);
    expect((await rlcli(["import", "-", "--max-errors", "1"], input)).err).toContain("More than 1 line is damaged");
  });
});

test("--dropped names every line left out, each once", async () => {
  const lines = Array.from({ length: 40 }, (_, i) =>
    i % 4 === 0 ? row(`${i}`) : i % 4 === 1 ? "{" : i % 4 === 2 ? "[]" : row("0"),
  );
  const args = ["import", "-", "-f", "messages", "--dedupe", "exact", "--dropped", "dropped.jsonl"];
  const { code, out } = await rlcli(args, lines.join("\n"));
  expect(code).toBe(0);
  const dropped = readFileSync(join(folder, "dropped.jsonl"), "utf8").trim().split("\n");
  const places = dropped.map((l) => JSON.parse(l) as { file: string; line: number; reason: string });
  expect(out.split("\n").length + places.length).toBe(40);
  expect(new Set(places.map((p) => p.line)).size).toBe(places.length);
  expect(places[0]).toMatchObject({ file: "<stdin>", line: 2, column: 2, kind: "damaged", reason: "JSON breaks off" });
  expect((await rlcli(["import", "-", "--strict", "--dropped", "none.jsonl"], "{\n")).code).toBe(1);
  expect(readdirSync(folder).filter((name) => name.startsWith("none.jsonl"))).toEqual([]);
});

test("a dataset of a spec holds byte for byte what the command writes", async () => {
  const line = (question: string, env: string, more: object[] = []) =>
    JSON.stringify({
      model: "m",
      messages: [{ role: "user", content: question }, { role: "assistant", content: "ok 🙂\u0000" }, ...more],
      metadata: { env },
    });
  const growing = [
    { role: "user", content: "more" },
    { role: "assistant", content: "yes" },
  ];
  mkdirSync(join(folder, "same"));
  const lines = [line("mail ada@x.org", "prod"), line("x", "test"), line("mail ada@x.org", "prod", growing), "{"];
  writeFileSync(join(folder, "same/log.jsonl"), lines.join("\n"));
  writeFileSync(
    join(folder, "same/rlcli.yaml"),
    "rlcli: 1\nproject: p\ndatasets: { d: { import: { from: log.jsonl, redact: true, where: metadata.env=prod } } }\n",
  );
  expect(await rlcli(["-C", "same", "apply", "-y"])).toMatchObject({ code: 0 });
  const [digest = ""] = readdirSync(join(folder, "same/.rlcli/datasets"));
  await rlcli(["import", "same/log.jsonl", "--redact", "--where", "metadata.env=prod", "-o", "same/rows.jsonl"]);
  const rows = readFileSync(join(folder, "same/rows.jsonl"), "utf8");
  expect(readFileSync(join(folder, "same/.rlcli/datasets", digest, "rows.jsonl"), "utf8")).toBe(rows);
  expect(rows).toContain("[EMAIL_1]");
  expect(rows.split("\n").length).toBe(2);
});

describe("stopping", () => {
  test.each(["SIGINT", "SIGTERM"] as const)("%s leaves the old file and nothing beside it", async (signal) => {
    const place = join(folder, signal);
    mkdirSync(place);
    writeFileSync(join(place, "rows.jsonl"), "before");
    const stopped = execa(process.execPath, [RLCLI, "import", "-", "-o", "rows.jsonl"], {
      cwd: place,
      reject: false,
      // Node 22 and later keep a cache of compiled code there.
      env: { TMPDIR: place, NODE_DISABLE_COMPILE_CACHE: "1" },
      stdin: "pipe",
    });
    // More than is read at once, so that rows are on their way when the signal comes.
    stopped.stdin.write(`${row("x".repeat(1000))}\n`.repeat(2000));
    await expect.poll(() => readdirSync(place).length).toBe(2);
    stopped.kill(signal);
    const { exitCode, stderr } = await stopped;
    expect({ exitCode, stderr }).toMatchObject({
      exitCode: 130,
      stderr: expect.stringContaining("was not written") as string,
    });
    expect(readdirSync(place)).toEqual(["rows.jsonl"]);
    expect(readFileSync(join(place, "rows.jsonl"), "utf8")).toBe("before");
  });
});

describe("sources", () => {
  test("a folder, compressed files and several formats; auto says what it found", async () => {
    mkdirSync(join(folder, "logs/deep"), { recursive: true });
    writeFileSync(join(folder, "logs/a.jsonl.gz"), gzipSync(`${row("a")}\n`));
    writeFileSync(join(folder, "logs/deep/b.json"), `[${row("b")}]`);
    writeFileSync(join(folder, "logs/readme.txt"), "no log");
    const claude = {
      system: "s",
      messages: [
        { role: "user", content: "c" },
        { role: "assistant", content: [{ type: "text", text: "r" }] },
      ],
    };
    writeFileSync(join(folder, "logs/c.jsonl"), JSON.stringify(claude));
    const { code, out, err } = await rlcli(["import", "logs"]);
    expect(code).toBe(0);
    expect(out.split("\n").map((l) => (JSON.parse(l) as { messages: unknown[] }).messages.length)).toEqual([2, 3, 2]);
    expect(err).toContain("3 rows from 3 lines (messages, anthropic)");
  });
  test("a folder without logs and an empty file are diagnostics", async () => {
    mkdirSync(join(folder, "nothing"));
    expect((await rlcli(["import", "nothing"])).err).toContain("RL6002");
    expect((await rlcli(["import", "-"], "")).err).toContain("There is no line in standard input.");
  });
});

describe("rules", () => {
  test("--stats, --where, --dedupe, --redact and --limit together", async () => {
    const lines = [
      row("mail ada@x.org", "ok", { env: "prod" }),
      row("mail ada@x.org", "ok", { env: "prod" }),
      row("other", "no", { env: "dev" }),
    ];
    const args = ["--stats", "--where", "env=prod", "--dedupe", "exact", "--redact", "--json", "-o", "rules.jsonl"];
    const { code, out } = await rlcli(["import", "-", ...args], lines.join("\n"));
    expect(code).toBe(0);
    expect(JSON.parse(out)).toMatchObject({
      rows: 1,
      dropped: { "does not meet a condition": 1, "equal to an earlier row": 1 },
      redacted: { EMAIL: 2 },
      stats: { rows: 1, roles: { assistant: 1, user: 1 }, messages: [0, 1] },
    });
    expect(readFileSync(join(folder, "rules.jsonl"), "utf8")).toBe(`${row("mail [EMAIL_1]", "ok")}\n`);
  });
  test("--max-tokens counts with a model's own template", async () => {
    const { out, err } = await rlcli(
      ["import", "-", "--max-tokens", "60", "--model", MODEL],
      `${row("short")}\n${row("word ".repeat(200))}\n`,
    );
    expect(out).toBe(row("short"));
    expect(err).toContain("more than 60 tokens");
  });
  test("names to redact come from a file", async () => {
    writeFileSync(join(folder, "names.txt"), "# people\nAda Lovelace\n\n");
    const { out } = await rlcli(["import", "-", "--redact", "--redact-names", "names.txt"], row("ada  lovelace wrote"));
    expect(out).toBe(row("[NAME_1] wrote"));
  });
  test.each([
    [["--seed", "3"], "--seed does nothing without --sample"],
    [["--max-tokens", "3"], "--max-tokens does nothing without --model"],
    [["--redact-pattern", "x"], "--redact-pattern does nothing without --redact"],
    [["--where", "nonsense"], "RL6013"],
    [["--redact", "--redact-pattern", "("], "RL6011"],
    [["--test-share", "1"], "below 1"],
  ])("%j is a diagnostic", async (args, expected) => {
    const { code, err } = await rlcli(["import", "-", ...args], row("x"));
    expect(code).toBe(1);
    expect(err).toContain(expected);
  });
  test("what redaction cannot reach ends the import", async () => {
    const call = { id: "1", type: "function", function: { name: "f", arguments: "{}" }, "ada@x.org": 1 };
    const line = JSON.stringify({
      messages: [
        { role: "user", content: "q" },
        { role: "assistant", content: "r", tool_calls: [call] },
      ],
    });
    const { code, err } = await rlcli(["import", "-", "--redact", "--keep-tools", "-o", "leak.jsonl"], line);
    expect(code).toBe(1);
    expect(err).toContain("RL6012");
    expect(err).not.toContain("ada@");
    expect(readdirSync(folder)).not.toContain("leak.jsonl");
  });
});

test("the same rules in a spec give the same rows, and defaults written out change no identity", async () => {
  writeFileSync(join(folder, "log.jsonl"), `${row("a")}\n${row("a")}\n${row("b")}\n`);
  const spec = (rules: string) =>
    `rlcli: 1\nproject: p\nserver: { backend: embedded, model: ${MODEL} }\ndatasets: { d: { import: { from: log.jsonl${rules} } } }\nruns: { a: { type: sl, dataset: d } }\n`;
  const digest = async (rules: string) => {
    writeFileSync(join(folder, "rlcli.yaml"), spec(rules));
    const { out } = await rlcli(["plan", "--json"]);
    return /"content"[^}]*?(sha256:[0-9a-f]{64})/.exec(out)?.[1] ?? out;
  };
  const plain = await digest("");
  expect(plain).toMatch(/^sha256:/);
  expect(
    await digest(", keep_tools: false, redact: false, choices: first, max_line_bytes: 16777216, strict: true"),
  ).toBe(plain);
  expect(await digest(", dedupe: exact")).not.toBe(plain);
  expect(await digest(", format: openai, dedupe: prefix")).toBe(await digest(", format: openai"));
  writeFileSync(join(folder, "rlcli.yaml"), spec(", dedupe: exact"));
  expect((await rlcli(["render", "a", "--row", "2"])).out).toContain("b<|im_end|>");
});
