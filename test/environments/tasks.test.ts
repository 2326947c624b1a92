import { mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openTasks } from "../../src/environments/tasks.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-tasks-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function rowsFile(name: string, text: string): string {
  const path = join(folder, name);
  writeFileSync(path, text);
  return path;
}

test("rows are read by number, in any order, whatever they hold", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.dictionary(fc.string(), fc.jsonValue().map(throughJson))),
      fc.boolean(),
      async (rows, endsWithNewline) => {
        const text = rows.map((row) => JSON.stringify(row)).join("\n");
        const tasks = await openTasks(rowsFile("any.jsonl", rows.length > 0 && endsWithNewline ? `${text}\n` : text));
        try {
          expect(tasks.count).toBe(rows.length);
          for (let i = rows.length - 1; i >= 0; i -= 1) expect(tasks.read(i)).toEqual(throughJson(rows[i]));
        } finally {
          tasks.close();
        }
      },
    ),
    { numRuns: 100 },
  );
});

const throughJson = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

test("more rows than the first guess holds, and lines longer than a read", async () => {
  const rows = Array.from({ length: 3000 }, (_, i) => ({ i, text: "é".repeat(i % 500 === 0 ? 200_000 : 3) }));
  const tasks = await openTasks(rowsFile("many.jsonl", rows.map((r) => `${JSON.stringify(r)}\n`).join("")));
  expect(tasks.count).toBe(3000);
  for (const i of [2999, 0, 1500, 1499, 1023, 1024]) expect(tasks.read(i)).toEqual(rows[i]);
  tasks.close();
});

test("an index outside is a mistake of the caller", async () => {
  const tasks = await openTasks(rowsFile("one.jsonl", "{}\n"));
  for (const index of [-1, 1, 0.5, Number.NaN]) expect(() => tasks.read(index)).toThrow(RangeError);
  tasks.close();
});

test("a file that is missing, cut or overwritten is RL8002", async () => {
  await expect(openTasks(join(folder, "absent.jsonl"))).rejects.toThrow("RL8002");
  const path = rowsFile("cut.jsonl", '{"a":1}\n{"a":2}\n[3]\n');
  const tasks = await openTasks(path);
  expect(() => tasks.read(2)).toThrow("RL8002");
  truncateSync(path, 10);
  expect(() => tasks.read(1)).toThrow(/RL8002.*ends at byte 10/);
  writeFileSync(path, "not json at all, but long enough\n");
  expect(() => tasks.read(0)).toThrow("RL8002");
  tasks.close();
});
