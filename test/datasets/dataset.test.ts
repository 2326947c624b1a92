// Importing from files: which files, identity, what is written, and what the user is told when it fails.
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  type DatasetRequest,
  datasetIdentity,
  importDataset,
  readManifest,
  rowsPath,
} from "../../src/datasets/dataset.ts";
import { findSources } from "../../src/datasets/sources.ts";
import { importWarnings } from "../../src/datasets/tally.ts";
import { RlcliError } from "../../src/diagnostic.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-datasets-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const row = (text: string) =>
  JSON.stringify({
    messages: [
      { role: "user", content: text },
      { role: "assistant", content: "ok" },
    ],
  });
const write = (name: string, ...lines: string[]) => {
  mkdirSync(join(folder, name, ".."), { recursive: true });
  writeFileSync(join(folder, name), lines.map((l) => `${l}\n`).join(""));
};
const request = (from: string[], more: Partial<DatasetRequest> = {}): DatasetRequest => ({
  format: "auto",
  from,
  baseFolder: folder,
  options: { min_messages: 2 },
  ...more,
});
const out = () => join(folder, "out");
const failure = async (work: Promise<unknown>) => {
  const error = await work.then(
    () => undefined,
    (e: unknown) => e,
  );
  expect(error).toBeInstanceOf(RlcliError);
  return (error as RlcliError).diagnostics[0]!;
};

describe("sources", () => {
  test.each([
    ["*.jsonl", ["a.jsonl", "b.jsonl"]],
    ["./*.jsonl", ["./a.jsonl", "./b.jsonl"]],
    ["**/*.jsonl", ["a.jsonl", "b.jsonl", "sub/c.jsonl", "sub/deep/d.jsonl"]],
    ["sub/**/*.jsonl", ["sub/c.jsonl", "sub/deep/d.jsonl"]],
    ["?.jsonl", ["a.jsonl", "b.jsonl"]],
    ["[!a].jsonl", ["b.jsonl"]],
    ["{a,x}.*", ["a.jsonl", "x.txt"]],
    ["[odd].txt", ["[odd].txt"]],
  ])("%s", async (pattern, expected) => {
    for (const name of ["a.jsonl", "b.jsonl", "sub/c.jsonl", "sub/deep/d.jsonl", ".hidden.jsonl", "x.txt", "[odd].txt"])
      write(name);
    const names = (await findSources([pattern], folder)).map((s) => s.name);
    expect(names.sort()).toEqual([...expected].sort());
  });
  test("a file named twice is read once, in the order of the list", async () => {
    write("a.jsonl");
    write("b.jsonl");
    expect((await findSources(["b.jsonl", "*.jsonl"], folder)).map((s) => s.name)).toEqual(["b.jsonl", "a.jsonl"]);
  });
  test("faults name the file and say what to do", async () => {
    expect(await failure(findSources(["no.jsonl"], folder))).toMatchObject({
      code: "RL6001",
      detail: "no.jsonl does not exist.",
    });
    expect(await failure(findSources(["*.none"], folder))).toMatchObject({ code: "RL6002" });
    mkdirSync(join(folder, "dir"));
    expect((await failure(findSources(["dir"], folder))).detail).toContain("dir/*");
  });
});

test("identity is content and options, not names; it equals the import's", async () => {
  write("a.jsonl", row("1"));
  write("b.jsonl", row("2"));
  const before = await datasetIdentity(request(["a.jsonl", "b.jsonl"]));
  expect((await datasetIdentity(request(["b.jsonl", "a.jsonl"]))).digest).not.toBe(before.digest);
  expect((await datasetIdentity(request(["*.jsonl"], { options: { min_messages: 3 } }))).digest).not.toBe(
    before.digest,
  );
  renameSync(join(folder, "a.jsonl"), join(folder, "a0.jsonl"));
  const after = await datasetIdentity(request(["*.jsonl"]));
  expect(after.digest).toBe(before.digest);
  const manifest = await importDataset(request(["*.jsonl"]), { outFolder: out(), expect: after.digest });
  expect(manifest.digest).toBe(after.digest);
  expect(manifest.sources.map((s) => s.name)).toEqual(["a0.jsonl", "b.jsonl"]);
});

test("writes canonical rows and a manifest, whole, once", async () => {
  write("a.jsonl", row("1"), "broken", row("2"));
  const manifest = await importDataset(request(["a.jsonl"]), { outFolder: out() });
  expect(readFileSync(rowsPath(out(), manifest.digest), "utf8")).toBe(`${row("1")}\n${row("2")}\n`);
  expect(manifest).toMatchObject({
    rows: 2,
    lines: 3,
    dropped: { "not a JSON object": 1 },
    formats: { "a.jsonl": "messages" },
  });
  expect(await readManifest(out(), manifest.digest)).toEqual(manifest);
  expect(readdirSync(out())).toHaveLength(1);
  const warning = importWarnings(manifest, "{…}")[0]!;
  expect(warning).toMatchObject({
    severity: "warning",
    code: "RL6005",
    range: { file: "a.jsonl", start: { line: 2 } },
  });
  rmSync(join(folder, "a.jsonl"));
  expect(await importDataset(request(["a.jsonl"]), { outFolder: out(), expect: manifest.digest })).toEqual(manifest);
});

test("a limit still hashes every source", async () => {
  write("a.jsonl", row("1"), row("2"));
  write("b.jsonl", row("3"));
  const limited = request(["*.jsonl"], { options: { min_messages: 2, limit: 1 } });
  const manifest = await importDataset(limited, { outFolder: out() });
  expect(manifest.rows).toBe(1);
  expect(manifest.digest).toBe((await datasetIdentity(limited)).digest);
});

test("a dataset without a usable row is an error that counts why and shows the shape", async () => {
  write("a.jsonl", "{}", "nope", row("1").replace("assistant", "user"));
  const { code, detail } = await failure(importDataset(request(["a.jsonl"]), { outFolder: out() }));
  expect(code).toBe("RL6004");
  expect(detail).toContain("a.jsonl:2");
  expect(detail).toContain('{"messages": [');
  expect(readdirSync(out())).toEqual([]);
  write("empty.jsonl");
  expect(await failure(importDataset(request(["empty.jsonl"]), { outFolder: out() }))).toMatchObject({
    code: "RL6004",
  });
});

test("rows that look like tasks are told how to be tasks", async () => {
  write("a.jsonl", '{"sum": "1+1"}');
  const { detail } = await failure(importDataset(request(["a.jsonl"], { isVerbatim: true }), { outFolder: out() }));
  expect(detail).toContain("need `rows: tasks`");
});

test("a source that changed since the plan is refused", async () => {
  write("a.jsonl", row("1"));
  const { digest } = await datasetIdentity(request(["a.jsonl"]));
  write("a.jsonl", row("2"));
  expect(await failure(importDataset(request(["a.jsonl"]), { outFolder: out(), expect: digest }))).toMatchObject({
    code: "RL6007",
  });
});

test("an unknown format and a folder that cannot be written are diagnostics", async () => {
  write("a.jsonl", row("1"));
  expect(await failure(importDataset(request(["a.jsonl"], { format: "csv" }), { outFolder: out() }))).toMatchObject({
    code: "RL6003",
  });
  writeFileSync(join(folder, "file"), "");
  expect(await failure(importDataset(request(["a.jsonl"]), { outFolder: join(folder, "file") }))).toMatchObject({
    code: "RL6006",
  });
});

test.skipIf(process.getuid?.() === 0)("an unreadable file is a diagnostic", async () => {
  write("a.jsonl", row("1"));
  chmodSync(join(folder, "a.jsonl"), 0);
  expect(await failure(datasetIdentity(request(["a.jsonl"])))).toMatchObject({ code: "RL6001" });
});
