/** What every state store must do; run over each implementation. Two stores on one state, so that nothing passes by being re-entrant. */
import { expect, test } from "vitest";
import { RlcliError } from "../../src/diagnostic.ts";
import { leaseOwner } from "../../src/state/lease.ts";
import type { StateStore } from "../../src/state/store.ts";
import type { LeaseOwner, StateRecordDraft } from "../../src/state-record.ts";

export interface StoreFixture {
  /** Another client of the same state. */
  open(now?: () => Date): StateStore;
}

export const draft = (
  address: StateRecordDraft["address"],
  results: StateRecordDraft["results"] = {},
): StateRecordDraft => ({
  address,
  status: "ready",
  hash: "sha256:00",
  incarnation: 1,
  attributes: { learning_rate: 1e-4 },
  dependsOn: [],
  results,
});

/** An owner whose process is gone: this one's pid with another start time. */
const deadOwner = (): LeaseOwner => ({ ...leaseOwner("a dead worker"), process: { pid: process.pid, startTime: "0" } });

async function codeOf(promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise;
  } catch (error) {
    if (error instanceof RlcliError) return error.diagnostics[0]?.code;
    throw error;
  }
  return undefined;
}

export function storeSuite(fixture: () => StoreFixture): void {
  const address = "run.agent";

  test("a record comes back as written, with version, time and fence", async () => {
    const store = fixture().open();
    const { token } = await store.takeLease(address, leaseOwner("test"), 60_000);
    const written = await store.write(draft(address, { step: 40 }), { expect: 0, fence: token });
    expect(written).toMatchObject({ version: 1, fence: token, results: { step: 40 } });
    expect(await fixture().open().read(address)).toEqual(written);
    expect((await store.list()).records).toEqual(new Map([[address, written]]));
  });

  test("an empty state has no lineage; the first write gives it one for good", async () => {
    const store = fixture().open();
    expect(await store.lineage()).toBeUndefined();
    const { token } = await store.takeLease(address, leaseOwner("test"), 60_000);
    await store.write(draft(address), { expect: 0, fence: token });
    const lineage = await store.lineage();
    expect(lineage).toMatch(/^[0-9a-f-]{36}$/);
    await store.write(draft(address), { expect: 1, fence: token });
    expect(await fixture().open().lineage()).toBe(lineage);
  });

  test("compare-and-swap: of two writers who read the same version one is refused", async () => {
    const [one, two] = [fixture().open(), fixture().open()];
    const { token } = await one.takeLease(address, leaseOwner("test"), 60_000);
    await one.write(draft(address), { expect: 0, fence: token });
    await one.write(draft(address, { by: "one" }), { expect: 1, fence: token });
    expect(await codeOf(two.write(draft(address, { by: "two" }), { expect: 1, fence: token }))).toBe("RL3002");
    expect((await two.read(address))?.results).toEqual({ by: "one" });
  });

  test("versions go on after a removal", async () => {
    const store = fixture().open();
    const { token } = await store.takeLease(address, leaseOwner("test"), 60_000);
    await store.write(draft(address), { expect: 0, fence: token });
    await store.remove(address, { expect: 1, fence: token });
    expect(await store.read(address)).toBeUndefined();
    expect((await store.list()).records.size).toBe(0);
    const again = await store.write(draft(address), { expect: 0, fence: token });
    expect(again.version).toBeGreaterThan(1);
    expect(await codeOf(fixture().open().write(draft(address), { expect: 1, fence: token }))).toBe("RL3002");
  });

  test("a lease keeps others out until it is released", async () => {
    const [one, two] = [fixture().open(), fixture().open()];
    const lease = await one.takeLease(address, leaseOwner("one"), 60_000);
    expect(await codeOf(two.takeLease(address, leaseOwner("two"), 60_000))).toBe("RL3003");
    expect(await codeOf(one.takeLease(address, leaseOwner("one"), 60_000))).toBe("RL3003");
    expect((await two.leases()).map((held) => held.owner.purpose)).toEqual(["one"]);
    await one.releaseLease(lease);
    const next = await two.takeLease(address, leaseOwner("two"), 60_000);
    expect(next.token).toBeGreaterThan(lease.token);
  });

  test("a dead owner's lease is taken over at once", async () => {
    const store = fixture().open();
    await store.takeLease(address, deadOwner(), 60_000);
    expect((await store.takeLease(address, leaseOwner("next"), 60_000)).token).toBe(2);
  });

  test("a silent owner's lease is taken over when it has expired, and its writes are refused then", async () => {
    let time = Date.parse("2026-01-01T00:00:00Z");
    const now = () => new Date(time);
    const [one, two] = [fixture().open(now), fixture().open(now)];
    const old = await one.takeLease(address, leaseOwner("sleeper"), 60_000);
    await one.write(draft(address), { expect: 0, fence: old.token });
    time += 59_000;
    expect(await codeOf(two.takeLease(address, leaseOwner("next"), 60_000))).toBe("RL3003");
    time += 2000;
    const lease = await two.takeLease(address, leaseOwner("next"), 60_000);
    expect(await codeOf(one.write(draft(address, { late: true }), { expect: 1, fence: old.token }))).toBe("RL3005");
    expect(await codeOf(one.renewLease(old, 60_000))).toBe("RL3005");
    await one.releaseLease(old);
    await two.write(draft(address, { by: "next" }), { expect: 1, fence: lease.token });
    expect((await one.read(address))?.results).toEqual({ by: "next" });
  });

  test("a renewed lease lives on, and may pass to another owner under its token", async () => {
    let time = Date.parse("2026-01-01T00:00:00Z");
    const store = fixture().open(() => new Date(time));
    const lease = await store.takeLease(address, leaseOwner("apply"), 60_000);
    time += 50_000;
    const worker = leaseOwner("worker");
    const renewed = await store.renewLease(lease, 60_000, worker);
    expect(renewed).toMatchObject({ token: lease.token, owner: worker });
    time += 50_000;
    expect(await codeOf(store.takeLease(address, leaseOwner("other"), 60_000))).toBe("RL3003");
    await store.write(draft(address), { expect: 0, fence: renewed.token });
  });

  test("a write without the lease is refused", async () => {
    const store = fixture().open();
    expect(await codeOf(store.write(draft(address), { expect: 0, fence: 1 }))).toBe("RL3005");
  });

  test("addresses do not hinder each other", async () => {
    const store = fixture().open();
    const names = Array.from({ length: 50 }, (_, at) => `run.r${at}` as const);
    await Promise.all(
      names.map(async (name) => {
        const { token } = await store.takeLease(name, leaseOwner("test"), 60_000);
        await store.write(draft(name), { expect: 0, fence: token });
      }),
    );
    expect((await store.list()).records.size).toBe(50);
  });
}
