import {
  appendFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { JsonLinesFile, readJsonLines, writeFileWhole } from "../../src/files.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-files-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("writeFileWhole", () => {
  test("replaces a file and leaves nothing else behind", () => {
    const path = join(folder, "deep/er/file.json");
    writeFileWhole(path, "one");
    writeFileWhole(path, "two", { mode: 0o600 });
    expect(readFileSync(path, "utf8")).toBe("two");
    expect(statSync(path).mode & 0o777).toBe(0o600);
    expect(readdirSync(join(folder, "deep/er"))).toEqual(["file.json"]);
  });

  test("a failed write keeps the old file and no temporary one", () => {
    const path = join(folder, "taken");
    writeFileSync(join(folder, "keep"), "");
    // A folder in its place cannot be replaced by a file.
    writeFileWhole(join(path, "inner"), "x");
    expect(() => writeFileWhole(path, "y")).toThrow();
    expect(readdirSync(folder).sort()).toEqual(["keep", "taken"]);
  });
});

describe("JSON lines", () => {
  test("a new file begins with its format and is read without it", () => {
    const path = join(folder, "a.jsonl");
    const file = new JsonLinesFile(path);
    file.append({ a: 1 }, { a: 2 });
    file.close();
    expect(readFileSync(path, "utf8")).toBe('{"formatVersion":1}\n{"a":1}\n{"a":2}\n');
    expect(readJsonLines(path)).toMatchObject({
      values: [{ a: 1 }, { a: 2 }],
      formatVersion: 1,
      bad: [],
      tornBytes: 0,
    });
  });

  test("a missing file is an empty one", () => {
    expect(readJsonLines(join(folder, "none.jsonl"))).toMatchObject({ values: [], tornBytes: 0 });
  });

  test("a bad line is reported by number, the others are read", () => {
    const path = join(folder, "a.jsonl");
    writeFileSync(path, '{"formatVersion":1}\n{"a":1}\n{"a":\n{"a":3}\n');
    const { values, bad } = readJsonLines(path);
    expect(values).toEqual([{ a: 1 }, { a: 3 }]);
    expect(bad.map((line) => line.line)).toEqual([3]);
  });

  test("whatever byte a crash cut it at, what was whole is read and writing goes on behind it (property)", () => {
    fc.assert(
      fc.property(
        fc.array(fc.string({ unit: "grapheme", maxLength: 6 }), { maxLength: 6 }),
        fc.nat(),
        (texts, cutAt) => {
          const path = join(folder, "cut.jsonl");
          rmSync(path, { force: true });
          const file = new JsonLinesFile(path);
          for (const text of texts) file.append({ text });
          file.close();
          const size = statSync(path).size;
          const cut = cutAt % (size + 1);
          const whole = readFileSync(path).subarray(0, cut).toString("latin1").split("\n").length - 1;
          truncateSync(path, cut);
          const again = new JsonLinesFile(path);
          again.append({ text: "after" });
          again.close();
          const kept = texts.slice(0, Math.max(0, whole - 1)).map((text) => ({ text }));
          expect(readJsonLines(path)).toMatchObject({
            values: [...kept, { text: "after" }],
            bad: [],
            tornBytes: 0,
            formatVersion: 1,
          });
        },
      ),
      { numRuns: 100 },
    );
  });

  test("a tail without a newline is torn, even if it parses", () => {
    const path = join(folder, "a.jsonl");
    appendFileSync(path, '{"formatVersion":1}\n{"a":1}\n{"a":2}');
    expect(readJsonLines(path)).toMatchObject({ values: [{ a: 1 }], tornBytes: 7 });
  });
});
