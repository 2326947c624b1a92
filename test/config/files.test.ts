/** What a file may be made of: encodings, line ends, sizes, and paths that lead to no file. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { type LoadResult, loadSpec } from "../../src/config/load.ts";

const folder = mkdtempSync(join(tmpdir(), "rlcli-files-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SPEC = `rlcli: 1
project: demo
server: { backend: embedded, model: builtin:tiny }
datasets:
  rows: { source: rows.jsonl }
runs:
  a: { type: sl, dataset: rows }
`;

function load(content: string | Uint8Array, file = "rlcli.yaml"): Promise<LoadResult> {
  writeFileSync(join(folder, file), content);
  return loadSpec({ files: [file], variables: {}, variableFiles: [], env: {}, cwd: folder });
}

/** `code line:column`. */
function marks({ diagnostics }: LoadResult): string[] {
  return diagnostics.map((d) => `${d.code} ${d.range?.start.line}:${d.range?.start.column}`);
}

function utf16(text: string, isBigEndian: boolean): Uint8Array {
  const bytes = Buffer.from(`\uFEFF${text}`, "utf16le");
  return isBigEndian ? bytes.swap16() : bytes;
}

describe("a sound spec loads", () => {
  test.each([
    ["as UTF-8", SPEC],
    ["with a byte-order mark", `\uFEFF${SPEC}`],
    ["with CRLF", SPEC.replaceAll("\n", "\r\n")],
    ["without a last line break", SPEC.trimEnd()],
    ["in UTF-16, little-endian", utf16(SPEC, false)],
    ["in UTF-16, big-endian", utf16(SPEC, true)],
    ["as JSON", JSON.stringify({ rlcli: 1, project: "demo", servers: {}, runs: {} })],
    ["with a document start and end", `---\n${SPEC}...\n`],
    ["with a YAML directive", `%YAML 1.2\n---\n${SPEC}`],
  ])("%s", async (_, content) => {
    const { spec, diagnostics } = await load(content);
    expect(diagnostics).toEqual([]);
    expect(spec?.project).toBe("demo");
  });
});

describe("faults have their place", () => {
  test.each<[string, string | Uint8Array, string[]]>([
    ["after a byte-order mark", "\uFEFFrlcli: 1\nprojekt: x\n", ["RL1106 1:1", "RL1101 2:1"]],
    ["with CRLF", SPEC.replace("rows }", "row }").replaceAll("\n", "\r\n"), ["RL1201 7:27"]],
    ["after wide characters", `# 🎉🎉\n${SPEC.replace("source:", '"🎉": x, source:')}`, ["RL1101 6:11"]],
    ["in Latin-1", Buffer.from("rlcli: 1\nproject: caf\xe9\n", "latin1"), ["RL1002 2:13"]],
    ["in UTF-16 without a byte-order mark", Buffer.from(SPEC, "utf16le"), ["RL1002 1:2"]],
    ["in a binary file", Buffer.from([0x7f, 0x45, 0x4c, 0x46, 0, 1]), ["RL1002 1:1"]],
    ["in an empty file", "", ["RL1007 1:1"]],
    ["in a file of white space", " \n\n  \n", ["RL1007 1:1"]],
    ["in a file of a byte-order mark", "\uFEFF", ["RL1007 1:1"]],
    [
      "under a YAML 1.1 directive, which does not bring its booleans back",
      `%YAML 1.1\n---\n${SPEC.replace("dataset: rows", "dataset: rows, from_optimizer: yes, from: a")}`,
      ["RL1102 9:49", "RL2001 9:60"],
    ],
  ])("%s", async (_, content, expected) => {
    expect(marks(await load(content))).toEqual(expected);
  });

  test("the source line has no line break", async () => {
    const { diagnostics } = await load("rlcli: 1\r\nproject: demo\r\nextra: 1\r\n");
    expect(diagnostics.map((d) => d.sourceLine)).toEqual(["extra: 1"]);
  });
});

describe("paths that lead to no file", () => {
  const loadPath = (file: string): Promise<LoadResult> =>
    loadSpec({ files: [file], variables: {}, variableFiles: [], env: {}, cwd: folder });

  test.each([
    ["missing", "nowhere.yaml", "rlcli init"],
    ["a folder", ".", "./rlcli.yaml"],
    ["below a file", "plain/rlcli.yaml", "a file, not a folder"],
  ])("%s", async (_, file, words) => {
    writeFileSync(join(folder, "plain"), "");
    const { diagnostics } = await loadPath(file);
    expect(diagnostics.map((d) => d.code)).toEqual(["RL1001"]);
    expect(diagnostics[0]?.detail).toContain(words);
  });

  // Root reads whatever the mode says.
  test.skipIf(process.getuid?.() === 0)("unreadable", async () => {
    const path = join(folder, "secret.yaml");
    writeFileSync(path, SPEC);
    chmodSync(path, 0);
    const { diagnostics } = await loadPath("secret.yaml");
    expect(diagnostics[0]?.detail).toContain("permissions");
  });

  test("the folder of the spec is that of its first file", async () => {
    mkdirSync(join(folder, "base"), { recursive: true });
    writeFileSync(join(folder, "base", "rlcli.yaml"), SPEC);
    writeFileSync(join(folder, "over.yaml"), "runs: { a: { seed: 1 } }\n");
    const { spec } = await loadSpec({
      files: ["base/rlcli.yaml", "over.yaml"],
      variables: {},
      variableFiles: [],
      env: {},
      cwd: folder,
    });
    expect(spec?.folder).toBe(join(folder, "base"));
    expect(spec?.nodes.get("run.a")?.rangeOf("seed")).toMatchObject({
      file: "over.yaml",
      start: { line: 1, column: 20 },
    });
    expect(spec?.nodes.get("run.a")?.rangeOf("batch_size")).toMatchObject({
      file: "over.yaml",
      start: { line: 1, column: 9 },
    });
  });
});

describe("size and depth", () => {
  const blocks = (n: number): string =>
    `${SPEC}${Array.from({ length: n }, (_, i) => `  r${i}:\n    type: sl\n    dataset: rows\n    seed: ${i}\n${i % 10 === 0 ? "" : `    from: r${i - 1}\n`}`).join("")}`;

  test("10,000 blocks load", async () => {
    const { spec, diagnostics } = await load(blocks(10_000));
    expect(diagnostics).toEqual([]);
    expect(spec?.nodes.size).toBe(10_003);
    expect(spec?.nodes.get("run.r9999")?.references).toContainEqual({ path: "from", to: "run.r9998" });
  });

  test("10,000 blocks with a fault each report them all", async () => {
    const { diagnostics } = await load(blocks(10_000).replaceAll("seed:", "sead:"));
    expect(diagnostics.length).toBe(10_000);
    expect(new Set(diagnostics.map((d) => d.range?.start.line)).size).toBe(10_000);
  });

  test("a long cycle is found once", async () => {
    const n = 5_000;
    const runs = Array.from({ length: n }, (_, i) => `  r${i}: { type: sl, dataset: rows, from: r${(i + 1) % n} }\n`);
    expect(marks(await load(SPEC + runs.join("")))).toEqual(["RL2001 8:40"]);
  });

  test("duplicate keys are found in a large map", async () => {
    const n = 20_000;
    const rows = Array.from({ length: n }, (_, i) => `  d${i}: { source: a }\n`).join("");
    expect(marks(await load(`rlcli: 1\nproject: demo\ndatasets:\n${rows}  d0: { source: b }\n`))).toEqual([
      `RL1005 ${n + 4}:3`,
    ]);
  });

  test.each([
    ["brackets", `a: ${"[".repeat(1_000_000)}`],
    ["braces", "{".repeat(1_000_000)],
    ["closed brackets", `a: ${"[".repeat(500)}${"]".repeat(500)}`],
    ["indentation", Array.from({ length: 2_000 }, (_, i) => `${" ".repeat(i)}a:\n`).join("")],
    ["lists", `a: ${"- ".repeat(300)}x`.replace("a: ", "a:\n  ")],
  ])("deep %s are one fault, not a crash", async (_, content) => {
    const { diagnostics } = await load(content);
    expect(diagnostics.map((d) => d.code)).toContain("RL1009");
    expect(diagnostics.length).toBeLessThan(5);
  });

  test("a value of 5 MB", async () => {
    const { diagnostics } = await load(`rlcli: 1\nproject: "${"x".repeat(5_000_000)}"\n`);
    expect(marks({ diagnostics })).toEqual(["RL1105 2:10"]);
    expect(diagnostics[0]?.detail.length).toBeLessThan(300);
  });
});
