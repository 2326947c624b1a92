// Every folder of test/fixtures/import is a case: files in, with options.json; rows and counts out, compared with
// expected.jsonl and report.json. A new case is a folder and adds no code; `vitest -u` writes what it gives.
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { convert, type ImportOptions } from "../../src/datasets/convert.ts";
import { FORMATS, formatNamed } from "../../src/datasets/registry.ts";
import { findSources, openSource } from "../../src/datasets/sources.ts";
import { Tally } from "../../src/datasets/tally.ts";

const ROOT = fileURLToPath(new URL("../fixtures/import", import.meta.url));
const cases = readdirSync(ROOT);

async function run(name: string, threads?: number) {
  const folder = `${ROOT}/${name}`;
  const { format, ...rules } = JSON.parse(readFileSync(`${folder}/options.json`, "utf8")) as { format: string };
  const inputs = readdirSync(folder).filter((f) => !/^(options|report)\.json$|^expected/.test(f));
  const options: ImportOptions = { min_messages: 2, ...rules };
  const sources = (await findSources(inputs.sort(), folder)).map((file) => openSource(file));
  const tally = new Tally();
  const request = {
    format: format === "auto" ? undefined : formatNamed(format),
    options,
    ...(threads === undefined ? {} : { threads }),
  };
  const chunks: Buffer[] = [];
  for await (const lines of convert(sources, request, tally)) chunks.push(lines);
  return { rows: Buffer.concat(chunks).toString(), statistics: tally.statistics() };
}

test("there are many cases, of every kind", () => {
  expect(cases.length).toBeGreaterThanOrEqual(120);
  const kinds = new Set(cases.map((name) => name.replace(/-.*/, "")));
  expect([...kinds].sort()).toEqual(
    [...FORMATS.map((f) => f.name.replace(/-.*/, "")), "redact", "rule", "source"].sort(),
  );
});

describe.each(cases)("%s", (name) => {
  test("gives the rows and the counts that are written down", async () => {
    const { rows, statistics } = await run(name);
    await expect(rows).toMatchFileSnapshot(`${ROOT}/${name}/expected.jsonl`);
    await expect(`${JSON.stringify(statistics, null, 2)}\n`).toMatchFileSnapshot(`${ROOT}/${name}/report.json`);
    // Nothing is left out in silence: what was taken off conversations and lines adds up.
    expect(rows.split("\n").length - 1).toBe(statistics.rows);
  });
});
