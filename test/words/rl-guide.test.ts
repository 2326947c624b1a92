/** docs/guide/rl.md says what there is: every field, every metric, and commands that the program takes. */
import { readFileSync } from "node:fs";
import type { Command } from "commander";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { createProgram } from "../../src/cli/program.ts";
import { type BlockName, blockInfo, type FieldInfo } from "../../src/config/fields.ts";
import { METRICS, metricNamed } from "../../src/training/rl/metrics.ts";

const page = readFileSync(new URL("../../docs/guide/rl.md", import.meta.url), "utf8");

const fences = (language: string): readonly string[] =>
  [...page.matchAll(new RegExp(`^\`\`\`${language}\n([\\s\\S]*?)^\`\`\``, "gm"))].map(([, text]) => text as string);

describe("fields", () => {
  /** What a field means only for types that this page is not about. */
  const isOfOthers = ({ when }: FieldInfo) =>
    when?.path === "type" && when.values.every((type) => type === "sl" || type === "harbor");

  test.each(["environment", "loss", "run", "eval", "deployment"] as const)("every one of %s is named", (block) => {
    const names = blockInfo(block as BlockName)
      .fields.filter((field) => !isOfOthers(field))
      .map(({ path }) => path.split(".").at(-1) as string);
    // Words in code, in a list, as a key or as a dotted path.
    const isNamed = (name: string) => new RegExp(`[\`{,. ]${name}[\`:,. }]`).test(page);
    expect(names.length).toBeGreaterThan(2);
    expect(names.filter((name) => !isNamed(name))).toEqual([]);
  });

  test("the examples in YAML name fields that there are", () => {
    const keys = { environments: "environment", runs: "run", evals: "eval", deployments: "deployment" } as const;
    for (const text of fences("yaml")) {
      const spec = parse(text) as Record<string, Record<string, Record<string, unknown>>>;
      for (const [key, kind] of Object.entries(keys))
        for (const body of Object.values(spec[key] ?? {}))
          for (const field of Object.keys(body))
            expect(
              blockInfo(kind).fields.some(({ path }) => path === field || path.startsWith(`${field}.`)),
              `${kind}.${field}`,
            ).toBe(true);
    }
  });
});

describe("metrics", () => {
  const cell = (text: string) => text.replaceAll("|", "\\|");

  test("the table is that of `rlcli explain metric`", () => {
    const rows = METRICS.map(({ name, formula, description }) => `| \`${name}\` | ${cell(formula)} | ${description} |`);
    const table = ["| metric | formula | |", "|---|---|---|", ...rows].join("\n");
    const [, found] = /<!-- metrics -->\n([\s\S]*?)\n<!-- \/metrics -->/.exec(page) ?? [];
    expect(found).toBe(table);
  });

  test("names with a part that stands for another", () => {
    expect(metricNamed("pass@8")?.name).toBe("pass@K");
    expect(metricNamed("env/reward/format")?.name).toBe("env/METRIC");
    expect(metricNamed("reward/median")).toBeUndefined();
  });
});

test("every command line is one that the program takes", () => {
  const program = createProgram(async () => {});
  const lines = fences("sh")
    .join("")
    .replaceAll("\\\n", " ")
    .split("\n")
    .map((line) => line.replace(/\s+#.*$/, "").trim())
    .filter((line) => line.startsWith("rlcli "));
  expect(lines.length).toBeGreaterThan(15);
  for (const line of lines) {
    const words = line.split(/\s+/).slice(1);
    let command: Command = program;
    while (words[0] !== undefined) {
      const next = command.commands.find((candidate) => candidate.name() === words[0]);
      if (!next) break;
      command = next;
      words.shift();
    }
    expect(command, line).not.toBe(program);
    const known = new Set(command.options.flatMap(({ long, short }) => [long, short]));
    for (const word of words.filter((w) => /^--?[a-z]/.test(w))) expect(known.has(word), `${line}: ${word}`).toBe(true);
  }
});
