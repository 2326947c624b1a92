import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { DamagedFile, VersionedFolder } from "../../src/state/versioned.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "rlcli-versioned-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("VersionedFolder", () => {
  test("keeps the newest version and the one before", () => {
    const files = new VersionedFolder<number>(folder);
    for (let version = 0; version < 5; version++) expect(files.write("run.a", version, version * 10)).toBe(true);
    expect(files.read("run.a")).toEqual({ version: 5, value: 40 });
    expect(readdirSync(folder).sort()).toEqual(["run.a@4.json", "run.a@5.json"]);
  });

  test("refuses a write on an old version, also from a folder object that has not looked since", () => {
    const one = new VersionedFolder<string>(folder);
    const two = new VersionedFolder<string>(folder);
    expect(one.write("a", 0, "first")).toBe(true);
    expect(two.read("a")?.version).toBe(1);
    for (let version = 1; version < 9; version++) expect(one.write("a", version, `one ${version}`)).toBe(true);
    expect(two.write("a", 1, "late")).toBe(false);
    expect(two.read("a")).toEqual({ version: 9, value: "one 8" });
  });

  test("remembers versions across a removal", () => {
    const files = new VersionedFolder<string>(folder);
    files.write("a", 0, "x");
    expect(files.write("a", 1, null)).toBe(true);
    expect(files.read("a")).toEqual({ version: 2, value: undefined });
    expect(files.write("a", 0, "y")).toBe(false);
    expect(files.write("a", 2, "y")).toBe(true);
  });

  test("a key that is the beginning of another is another key", () => {
    const files = new VersionedFolder<string>(folder);
    files.write("run.a", 0, "short");
    files.write("run.ab", 0, "long");
    expect(files.versions()).toEqual(
      new Map([
        ["run.a", 1],
        ["run.ab", 1],
      ]),
    );
  });

  test("a damaged file names the intact version before it", () => {
    const files = new VersionedFolder<string>(folder);
    files.write("a", 0, "x");
    files.write("a", 1, "y");
    writeFileSync(join(folder, "a@2.json"), '{"write": "torn');
    const damage = (() => {
      try {
        files.read("a");
      } catch (error) {
        return error;
      }
      return undefined;
    })();
    expect(damage).toBeInstanceOf(DamagedFile);
    expect((damage as DamagedFile).intact).toBe(join(folder, "a@1.json"));
    rmSync(join(folder, "a@2.json"));
    expect(files.read("a")).toEqual({ version: 1, value: "x" });
  });

  test("temporary files that a crash left are no versions", () => {
    writeFileSync(join(folder, "a@7.json.123-ab.tmp"), "x");
    expect(new VersionedFolder(folder).versions().size).toBe(0);
  });

  test("any interleaving of two writers acts as one counter (property)", () => {
    fc.assert(
      fc.property(
        fc.array(fc.record({ who: fc.integer({ min: 0, max: 1 }), look: fc.boolean() }), { maxLength: 40 }),
        (moves) => {
          const place = mkdtempSync(join(tmpdir(), "rlcli-versioned-"));
          try {
            const writers = [new VersionedFolder<number>(place), new VersionedFolder<number>(place)] as const;
            const known = [0, 0];
            let value = 0;
            let version = 0;
            for (const { who, look } of moves) {
              const writer = writers[who]!;
              if (look) known[who] = writer.read("k")?.version ?? 0;
              const isRight = known[who] === version;
              expect(writer.write("k", known[who]!, value + 1)).toBe(isRight);
              if (isRight) {
                value += 1;
                version += 1;
                known[who] = version;
              }
            }
            expect(writers[0].read("k")?.value ?? 0).toBe(value);
          } finally {
            rmSync(place, { recursive: true, force: true });
          }
        },
      ),
      { numRuns: 30 },
    );
  });
});
