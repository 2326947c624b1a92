/** The table of edge cases names tests that there are: a test that is renamed or removed is missed here. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const root = new URL("../../../", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, root), "utf8");
const FILES: Readonly<Record<string, string>> = {
  units: "test/environments/harbor/units.test.ts",
  tasks: "test/environments/harbor/tasks.test.ts",
  trial: "test/environments/harbor/trial.test.ts",
  edges: "test/environments/harbor/edges.test.ts",
  episode: "test/environments/harbor/episode.test.ts",
  sandbox: "test/environments/harbor/sandbox.test.ts",
  turns: "test/training/rl/turns.test.ts",
  harbor: "test/e2e/harbor.test.ts",
  "harbor-daemon": "test/e2e/harbor-daemon.test.ts",
};

const rows = read("docs/decisions/2026-12-01-harbor-edge-cases.md")
  .split("\n")
  .flatMap((line) => {
    const [, number, file, title] = /^\| (\d+) \|.*\| ([\w-]+): `(.*)`(?: \*\(slow\)\*)? \|$/.exec(line) ?? [];
    return number === undefined ? [] : [{ number: Number(number), file: file as string, title: title as string }];
  });

test("all 47 are there", () => {
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: 47 }, (_, at) => at + 1));
});

test.each(rows)("$number: $file has such a test", ({ file, title }) => {
  expect(Object.keys(FILES)).toContain(file);
  expect(read(FILES[file] as string)).toContain(title);
});
