import { chmodSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { RlcliError } from "../../src/diagnostic.ts";
import { LocalStateStore } from "../../src/state/backends/local.ts";
import { leaseOwner } from "../../src/state/lease.ts";
import { storeRecord } from "../../src/state/recovery.ts";
import { draft, storeSuite } from "./suite.ts";

let project: string;
let folder: string;
beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), "rlcli-state-"));
  folder = join(project, ".rlcli/state");
});
afterEach(() => rmSync(project, { recursive: true, force: true }));

describe("local state", () => {
  storeSuite(() => ({ open: (now) => new LocalStateStore(folder, now ? { now } : {}) }));

  test("looking creates nothing", async () => {
    const store = new LocalStateStore(folder);
    await store.list();
    await store.read("run.a");
    await store.leases();
    expect(readdirSync(project)).toEqual([]);
  });

  test("a damaged record is a diagnostic that names the file and the way back; the others are still read", async () => {
    const store = new LocalStateStore(folder);
    for (const name of ["run.a", "run.b"] as const) {
      const { token } = await store.takeLease(name, leaseOwner("test"), 60_000);
      await store.write(draft(name), { expect: 0, fence: token });
      await store.write(draft(name, { step: 2 }), { expect: 1, fence: token });
    }
    writeFileSync(join(folder, "records/run.a@2.json"), "{");
    const { records, diagnostics } = await new LocalStateStore(folder).list();
    expect([...records.keys()]).toEqual(["run.b"]);
    expect(diagnostics.map((d) => d.code)).toEqual(["RL3001"]);
    expect(diagnostics[0]?.detail).toContain(".rlcli/state/records/run.a@2.json");
    expect(diagnostics[0]?.detail).toContain(".rlcli/state/records/run.a@1.json");
  });

  test("a record of a newer rlcli is refused, not misread", async () => {
    const store = new LocalStateStore(folder);
    const { token } = await store.takeLease("run.a", leaseOwner("test"), 60_000);
    const record = await store.write(draft("run.a"), { expect: 0, fence: token });
    writeFileSync(
      join(folder, "records/run.a@2.json"),
      JSON.stringify({ write: "x", value: { ...record, version: 2, formatVersion: 2 } }),
    );
    await expect(new LocalStateStore(folder).read("run.a")).rejects.toThrow(/RL3006/);
  });

  test("records stay under 2 KB", async () => {
    const store = new LocalStateStore(folder);
    const { token } = await store.takeLease("run.a", leaseOwner("test"), 60_000);
    await store.write(draft("run.a", { step: 1000, loss: 0.123456789 }), { expect: 0, fence: token });
    expect(statSync(join(folder, "records/run.a@1.json")).size).toBeLessThan(2048);
  });

  test("a state that cannot be written leaves a recovery file with the command to use it", async () => {
    const store = new LocalStateStore(folder);
    const { token } = await store.takeLease("run.a", leaseOwner("test"), 60_000);
    rmSync(join(folder, "records"), { recursive: true, force: true });
    // A file in the place of the folder: not writable for root either.
    writeFileSync(join(folder, "records"), "");
    const diagnostics = await storeRecord(store, draft("run.a"), { expect: 0, fence: token }, project);
    expect(diagnostics.map((d) => d.code)).toEqual(["RL3004"]);
    const file = join(project, "rlcli-recovery-run.a.json");
    expect(diagnostics[0]?.detail).toContain(`rlcli state push ${file}`);
    expect(statSync(file).size).toBeGreaterThan(0);
  });

  test.skipIf(process.getuid?.() === 0)("a read-only folder is a diagnostic", async () => {
    chmodSync(project, 0o555);
    try {
      await expect(new LocalStateStore(folder).takeLease("run.a", leaseOwner("test"), 60_000)).rejects.toThrow(
        RlcliError,
      );
    } finally {
      chmodSync(project, 0o755);
    }
  });
});
