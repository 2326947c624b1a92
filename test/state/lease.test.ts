import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { fail } from "../../src/diagnostic.ts";
import { Heartbeat, LEASE_TTL_MS, leaseOwner } from "../../src/state/lease.ts";
import type { LeaseRecord } from "../../src/state-record.ts";
import { type MemoryState, MemoryStateStore, newMemoryState } from "./memory.ts";

const BEAT_MS = 15_000;

describe("a lease's heartbeat", () => {
  let state: MemoryState;
  let lease: LeaseRecord;
  let isFull: boolean;
  let lost: number;
  let heartbeat: Heartbeat;

  /** Its disk can be full. */
  class Store extends MemoryStateStore {
    override async renewLease(...given: Parameters<MemoryStateStore["renewLease"]>): Promise<LeaseRecord> {
      return isFull ? fail("RL3004", "No space left.") : super.renewLease(...given);
    }
  }

  beforeEach(async () => {
    vi.useFakeTimers();
    [state, isFull, lost] = [newMemoryState(), false, 0];
    const store = new Store(state);
    lease = await store.takeLease("run.agent", leaseOwner("test"), LEASE_TTL_MS);
    heartbeat = new Heartbeat(store, lease, () => {
      lost += 1;
    });
  });
  afterEach(() => {
    heartbeat.close();
    vi.useRealTimers();
  });

  test("goes on after a beat that could not be written", async () => {
    isFull = true;
    await vi.advanceTimersByTimeAsync(BEAT_MS);
    expect(heartbeat.lease).toEqual(lease);
    isFull = false;
    await vi.advanceTimersByTimeAsync(2 * LEASE_TTL_MS);
    expect(Date.parse(heartbeat.lease.expiresAt)).toBeGreaterThan(Date.now());
    expect(lost).toBe(0);
  });

  test("ends once someone else has it, and says so once", async () => {
    state.leases.set(lease.address, { ...lease, token: lease.token + 1 });
    await vi.advanceTimersByTimeAsync(4 * BEAT_MS);
    expect(lost).toBe(1);
    expect(vi.getTimerCount()).toBe(0);
  });
});
