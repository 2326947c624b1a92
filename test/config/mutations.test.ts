/**
 * Whatever stands in a file, loading gives diagnostics with places inside the file, and nothing else. Specs are mutated as
 * text (what a slip of the hand does) and as values (what a wrong idea does).
 */

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import { stringify } from "yaml";
import { renderDiagnostics } from "../../src/cli/views/diagnostic.ts";
import { createStyle } from "../../src/cli/views/style.ts";
import { loadSpec } from "../../src/config/load.ts";
import { hasErrors } from "../../src/diagnostic.ts";
import { readCases } from "./cases.ts";

const folder = mkdtempSync(join(tmpdir(), "rlcli-mutations-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const SEEDS = readCases().map((c) => readFileSync(join(c.folder, "rlcli.yaml"), "utf8"));
const numRuns = process.env.RLCLI_TEST_ALL ? 5_000 : 400;

/** Pieces that mean something to YAML, to interpolation or to the schema. */
const PIECE = fc.constantFrom(
  ..."{}[]:,#&*!|>'\"%@`-?\t\n\r \\",
  "${",
  "}",
  "${var.x}",
  "$${",
  "<<: *a",
  "&a ",
  "*a",
  "---\n",
  "...\n",
  "!!int ",
  "yes",
  "~",
  ".nan",
  "1e999",
  "0x",
  "\u0000",
  "\uFEFF",
  "🎉",
  "\u2028",
  "run",
  "runs:\n",
  "from: a",
  "type: rl",
  "steps: 3",
  "__proto__: 1",
  "constructor: {}",
);

const mutatedText = fc
  .tuple(fc.constantFrom(...SEEDS), fc.array(fc.tuple(fc.nat(), fc.nat(20), PIECE), { minLength: 1, maxLength: 6 }))
  .map(([seed, edits]) =>
    edits.reduce((text, [at, drop, piece]) => {
      const i = at % (text.length + 1);
      return text.slice(0, i) + piece + text.slice(i + drop);
    }, seed),
  );

const anyValue = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom<unknown>(
      null,
      true,
      0,
      -1,
      1.5,
      1e-4,
      "",
      "sl",
      "rows",
      "a",
      "a@best",
      "${var.v}",
      "${secret.S}",
      "embedded",
      "cosine",
    ),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(
      fc.constantFrom(
        "type",
        "server",
        "dataset",
        "from",
        "steps",
        "epochs",
        "import",
        "schedule",
        "horizon",
        "loss",
        "optimizer",
        "backend",
        "model",
        "x.y",
        "a/b",
        "__proto__",
      ),
      tie("value"),
      { maxKeys: 4 },
    ),
  ),
})).value;

const block = fc.dictionary(fc.constantFrom("a", "b", "default", "1x", "toString"), anyValue, { maxKeys: 3 });
const anySpec = fc
  .record(
    {
      rlcli: fc.constantFrom<unknown>(1, 2, "1"),
      project: fc.constantFrom<unknown>("demo", 1, null),
      server: anyValue,
      servers: block,
      datasets: block,
      losses: block,
      runs: block,
      variables: block,
      evals: anyValue,
    },
    { requiredKeys: [] },
  )
  .map((value) => stringify(value));

/** The line as it is, but for masked secrets. */
function isLine(shown: string, line: string): boolean {
  return shown === line || (shown.includes("*") && shown.length === line.length);
}

async function checkLoads(text: string): Promise<void> {
  writeFileSync(join(folder, "rlcli.yaml"), text);
  const { spec, diagnostics } = await loadSpec({
    files: ["rlcli.yaml"],
    variables: {},
    variableFiles: [],
    env: {},
    cwd: folder,
  });
  expect(spec === undefined).toBe(hasErrors(diagnostics));
  // As the file has it: half of a surrogate pair is written as a replacement character.
  const read = Buffer.from(text)
    .toString()
    .replace(/^\uFEFF/, "");
  const lines = read.split("\n");
  for (const { range, sourceLine, detail } of diagnostics) {
    expect(detail).not.toMatch(/undefined|\[object|NaN/);
    if (range === undefined) throw new Error(`no place: ${detail}`);
    expect(range.start.offset).toBeGreaterThanOrEqual(0);
    expect(range.end.offset).toBeLessThanOrEqual(read.length);
    expect(range.end.offset).toBeGreaterThanOrEqual(range.start.offset);
    const line = lines[range.start.line - 1];
    expect(isLine(sourceLine ?? "", line?.replace(/\r$/, "") ?? "")).toBe(true);
    expect(range.start.column).toBeGreaterThanOrEqual(1);
    expect(range.start.column).toBeLessThanOrEqual((line ?? "").length + 1);
  }
  const rendered = renderDiagnostics(diagnostics, { style: createStyle(false), width: 80 });
  // biome-ignore lint/suspicious/noControlCharactersInRegex: none may reach a terminal.
  expect(rendered).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/);
}

describe("loading never throws", () => {
  test("for mutated texts", async () => {
    await fc.assert(fc.asyncProperty(mutatedText, checkLoads), { numRuns });
  });

  test("for well-formed files of any shape", async () => {
    await fc.assert(fc.asyncProperty(anySpec, checkLoads), { numRuns });
  });

  test("for arbitrary text", async () => {
    await fc.assert(fc.asyncProperty(fc.string({ unit: "grapheme", maxLength: 200 }), checkLoads), { numRuns });
  });
});
