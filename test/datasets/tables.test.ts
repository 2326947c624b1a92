// CSV and Parquet as sources, and rows that are tasks. The Parquet fixtures were written by pyarrow (test/fixtures/tasks/make.py).
import { copyFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type DatasetRequest, datasetIdentity, importDataset, rowsPath } from "../../src/datasets/dataset.ts";
import { tableForm, tableLines } from "../../src/datasets/tables.ts";

const fixtures = new URL("../fixtures/tasks/", import.meta.url).pathname;

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-tables-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const file = (name: string, content: string | Buffer): string => {
  writeFileSync(join(folder, name), content);
  return join(folder, name);
};
const tasks = (from: string, more: Partial<DatasetRequest> = {}): DatasetRequest => ({
  format: "tasks",
  from: [from],
  baseFolder: folder,
  options: { min_messages: 1 },
  isVerbatim: true,
  ...more,
});

async function imported(request: DatasetRequest) {
  const outFolder = join(folder, "out");
  const manifest = await importDataset(request, { outFolder });
  const text = readFileSync(rowsPath(outFolder, manifest.digest), "utf8");
  const rows = text.split("\n").slice(0, -1);
  return { manifest, rows: rows.map((line) => JSON.parse(line) as unknown), text };
}

async function linesOf(name: string, path: string): Promise<string[]> {
  const chunks: Buffer[] = [];
  for await (const chunk of tableLines({ name, path, form: tableForm(name)!, keepsNulls: true })) chunks.push(chunk);
  return Buffer.concat(chunks).toString().split("\n");
}

describe("tasks", () => {
  test("every object is kept as it is, whatever it holds", async () => {
    const rows = [{ question: "1+1?", answer: "2", meta: { level: [1, null] } }, {}, { messages: "no list" }];
    file("a.jsonl", rows.map((row) => `  ${JSON.stringify(row, null, 1).replaceAll("\n", " ")}\n`).join("\n"));
    const { manifest, rows: kept, text } = await imported(tasks("a.jsonl"));
    expect(kept).toEqual(rows);
    expect(text).toBe(rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
    expect(manifest).toMatchObject({ rows: 3, lines: 3, format: "tasks", rejected: [] });
  });

  test("JSON arrays and gzip", async () => {
    const rows = [{ question: "a" }, { question: "b" }];
    file("a.json", JSON.stringify(rows, null, 2));
    file("b.jsonl.gz", gzipSync(rows.map((row) => JSON.stringify(row)).join("\n")));
    expect((await imported(tasks("a.json"))).rows).toEqual(rows);
    expect((await imported(tasks("b.jsonl.gz"))).rows).toEqual(rows);
  });

  test("what is no object is a damaged line with its place", async () => {
    file("a.jsonl", '{"q": 1}\n[1]\n\n"text"\n{"q": \n');
    const { manifest } = await imported(tasks("a.jsonl"));
    expect(manifest.rejected).toMatchObject([
      { kind: "damaged", reason: "not a JSON object", places: ["a.jsonl:2:1", "a.jsonl:4:1"] },
      { kind: "damaged", reason: "JSON breaks off", places: ["a.jsonl:5:7"] },
    ]);
    await expect(imported(tasks("a.jsonl", { maxErrors: 2 }))).resolves.toMatchObject({ rows: [{ q: 1 }] });
  });

  test("nothing but damage is RL6004 and shows what a task is", async () => {
    file("a.jsonl", "[]\n");
    await expect(imported(tasks("a.jsonl"))).rejects.toThrow(/RL6004.*not a JSON object.*"question"/);
  });

  test("the same file as conversations is another dataset", async () => {
    file("a.jsonl", '{"q":1}\n');
    const one = await datasetIdentity(tasks("a.jsonl"));
    const other = await datasetIdentity(tasks("a.jsonl", { format: "messages" }));
    expect(one.digest).not.toBe(other.digest);
  });
});

describe("CSV", () => {
  test("quotes, line breaks, CRLF, a byte-order mark, empty fields", async () => {
    file("a.csv", '\ufeffquestion,answer\r\n"What is\r\n""1+1""?",2\r\n\r\nnext,\r\n');
    const { rows, manifest } = await imported(tasks("a.csv"));
    expect(rows).toEqual([
      { question: 'What is\r\n"1+1"?', answer: "2" },
      { question: "next", answer: "" },
    ]);
    expect(manifest.lines).toBe(2);
  });

  test.each([
    ["semicolons", "a.csv", "a;b\n1;2,5\n"],
    ["tabs", "a.tsv", "a\tb\n1\t2,5\n"],
    ["tabs under another name", "b.csv", "a\tb\n1\t2,5\n"],
    ["gzip", "c.csv.gz", gzipSync('a,b\n1,"2,5"\n')],
    ["UTF-16", "d.csv", Buffer.from('\ufeffa,b\n1,"2,5"\n', "utf16le")],
    ["no newline at the end", "e.csv", 'a,b\n1,"2,5"'],
    ["old line ends", "f.csv", 'a,b\r1,"2,5"\r'],
  ])("%s", async (_, name, content) => {
    file(name, content);
    expect((await imported(tasks(name))).rows).toEqual([{ a: "1", b: "2,5" }]);
  });

  test("a record of other length is damaged, at its line", async () => {
    file("a.csv", 'a,b\r\n"x\r\ny",2\r\n\r\n1,2,3\r\n4\r\n5,6\r\n');
    const { rows, manifest } = await imported(tasks("a.csv"));
    expect(rows).toEqual([
      { a: "x\r\ny", b: "2" },
      { a: "5", b: "6" },
    ]);
    expect(manifest.lines).toBe(4);
    expect(manifest.rejected).toMatchObject([
      { kind: "damaged", reason: "3 fields, the header names 2", places: ["a.csv:5:1"] },
      { kind: "damaged", reason: "1 field, the header names 2", places: ["a.csv:6:1"] },
    ]);
    await expect(imported({ ...tasks("a.csv"), maxErrors: 1 })).resolves.toBeDefined();
  });

  test("more damage than is borne is RL6014", async () => {
    file("a.csv", "a,b\n1,2\n3\n4,5\n6\n");
    await expect(imported(tasks("a.csv", { maxErrors: 1 }))).rejects.toThrow(/RL6014.*a\.csv:5/);
  });

  test.each([
    ["a quote that does not close", 'a,b\n1,2\n3,"open\n4,5\n', /RL6016: bad\.csv:3: .*does not close/],
    ["two columns of one name", "a,a\n1,2\n", /RL6016: bad\.csv:1: two columns are called "a"/],
    ["Latin-1", Buffer.from("a,b\n1,\xe9t\xe9\n", "latin1"), /RL6016: bad\.csv is not UTF-8/],
    ["cut-off gzip", gzipSync(`a,b\n${"1,2\n".repeat(9999)}`).subarray(0, 60), /RL6016: bad\.csv: .*breaks off/],
  ])("%s is RL6016", async (_, content, message) => {
    file("bad.csv", content);
    await expect(imported(tasks("bad.csv"))).rejects.toThrow(message);
  });

  test("a header alone has no rows", async () => {
    file("a.csv", "a,b\n");
    await expect(imported(tasks("a.csv"))).rejects.toThrow(/RL6004.*no line/);
  });

  test("any text comes back", async () => {
    const quote = (value: string) => `"${value.replaceAll('"', '""')}"`;
    const field = fc.string({ unit: fc.constantFrom("a", '"', ",", "\n", "\r", "é", " ", "\u{1f600}") });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(field, field), { minLength: 1 }),
        fc.constantFrom("\n", "\r\n"),
        async (rows, end) => {
          const path = file("any.csv", [["a", "b"], ...rows].map((row) => row.map(quote).join(",") + end).join(""));
          const lines = (await linesOf("any.csv", path)).filter((line) => line !== "");
          expect(lines.map((line) => JSON.parse(line))).toEqual(rows.map(([a, b]) => ({ a, b })));
        },
      ),
      { numRuns: 60 },
    );
  });

  test("is read in pieces", async () => {
    const count = 60_000;
    const path = file("big.csv", `n,text\n${Array.from({ length: count }, (_, i) => `${i},"row ${i}"\n`).join("")}`);
    const lines = await linesOf("big.csv", path);
    expect(lines[0]).toBe("");
    expect(lines).toHaveLength(count + 2);
    expect(lines[count]).toBe(`{"n":"${count - 1}","text":"row ${count - 1}"}`);
  });
});

describe("Parquet", () => {
  test("types become JSON", async () => {
    const lines = await linesOf("types.none.parquet", join(fixtures, "types.none.parquet"));
    await expect(lines.join("\n")).toMatchFileSnapshot("../golden/tasks/types.jsonl");
  });

  test.each(["snappy", "gzip", "brotli", "zstd", "lz4"])("%s gives the same", async (codec) => {
    const read = (name: string) => linesOf(name, join(fixtures, name));
    expect(await read(`types.${codec}.parquet`)).toEqual(await read("types.none.parquet"));
  });

  test("as tasks, and as conversations", async () => {
    copyFileSync(join(fixtures, "messages.parquet"), join(folder, "m.parquet"));
    const { rows, manifest } = await imported(tasks("m.parquet"));
    expect(rows).toHaveLength(3);
    expect(rows[0]).toMatchObject({ id: 1, messages: [{ role: "user" }, { role: "assistant", content: "hi 0" }] });
    const digest = (await datasetIdentity(tasks("m.parquet"))).digest;
    expect(manifest.digest).toBe(digest);
    const conversations = await imported(tasks("m.parquet", { format: "messages" }));
    expect(conversations.rows[2]).toEqual({
      messages: [
        { role: "user", content: "hello" },
        { role: "assistant", content: "hi 2" },
      ],
    });
  });

  test("bytes are refused, with the column", async () => {
    copyFileSync(join(fixtures, "binary.parquet"), join(folder, "b.parquet"));
    await expect(imported(tasks("b.parquet"))).rejects.toThrow(/RL6016.*`image\.bytes`/);
  });

  test("a cut file is RL6016, and no row of it is left", async () => {
    copyFileSync(join(fixtures, "messages.parquet"), join(folder, "b.parquet"));
    truncateSync(join(folder, "b.parquet"), 900);
    await expect(imported(tasks("b.parquet"))).rejects.toThrow("RL6016");
    await expect(imported(tasks(file("c.parquet", "PAR1 not really")))).rejects.toThrow("RL6016");
  });
});

test("a file is read as its name says, and that is part of what the dataset is", async () => {
  file("a.csv", "a\n1\n");
  file("a.jsonl", "a\n1\n");
  file("b.csv", "a\n1\n");
  const digest = async (name: string) => (await datasetIdentity(tasks(name))).digest;
  expect(await digest("a.csv")).toBe(await digest("b.csv"));
  expect(await digest("a.csv")).not.toBe(await digest("a.jsonl"));
});
