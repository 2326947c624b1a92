/** A state store in memory, for engine tests: fast, can be made to fail on its n-th write, and forgets leases like a reboot. */
import type { Address } from "../../src/address.ts";
import { fail } from "../../src/diagnostic.ts";
import { isAlive } from "../../src/process.ts";
import type { StateListing, StateStore, WriteOptions } from "../../src/state/store.ts";
import type { LeaseOwner, LeaseRecord, StateRecord, StateRecordDraft } from "../../src/state-record.ts";

export interface MemoryState {
  readonly records: Map<Address, { version: number; record: StateRecord | undefined }>;
  readonly leases: Map<Address, LeaseRecord>;
  lineage?: string;
  /** Writes until one fails with RL3004. */
  failAfter?: number;
}

export const newMemoryState = (): MemoryState => ({ records: new Map(), leases: new Map() });

export class MemoryStateStore implements StateStore {
  readonly description = "memory";
  readonly #state: MemoryState;
  readonly #now: () => Date;
  constructor(state: MemoryState, now: () => Date = () => new Date()) {
    this.#state = state;
    this.#now = now;
  }
  async lineage(): Promise<string | undefined> {
    return this.#state.lineage;
  }
  async list(): Promise<StateListing> {
    const entries = [...this.#state.records].flatMap(([address, { record }]) =>
      record ? [[address, record] as const] : [],
    );
    return { records: new Map(entries), diagnostics: [] };
  }
  async read(address: Address): Promise<StateRecord | undefined> {
    return this.#state.records.get(address)?.record;
  }
  async write(draft: StateRecordDraft, options: WriteOptions): Promise<StateRecord> {
    const version = this.#check(draft.address, options);
    const record: StateRecord = {
      formatVersion: 1,
      ...draft,
      version,
      updatedAt: this.#now().toISOString(),
      fence: options.fence,
    };
    this.#state.lineage ??= "00000000-0000-4000-8000-000000000000";
    this.#state.records.set(draft.address, { version, record });
    return record;
  }
  async remove(address: Address, options: WriteOptions): Promise<void> {
    this.#state.records.set(address, { version: this.#check(address, options), record: undefined });
  }
  async leases(): Promise<readonly LeaseRecord[]> {
    return [...this.#state.leases.values()].filter((lease) => this.#isHeld(lease));
  }
  async takeLease(address: Address, owner: LeaseOwner, ttlMs: number): Promise<LeaseRecord> {
    const current = this.#state.leases.get(address);
    if (current && this.#isHeld(current)) fail("RL3003", `${address} is being worked on by ${current.owner.purpose}.`);
    const at = this.#now();
    const lease: LeaseRecord = {
      formatVersion: 1,
      address,
      token: (current?.token ?? 0) + 1,
      owner,
      acquiredAt: at.toISOString(),
      renewedAt: at.toISOString(),
      expiresAt: new Date(at.getTime() + ttlMs).toISOString(),
      released: false,
    };
    this.#state.leases.set(address, lease);
    return lease;
  }
  async renewLease(lease: LeaseRecord, ttlMs: number, owner?: LeaseOwner): Promise<LeaseRecord> {
    const current = this.#state.leases.get(lease.address);
    if (current?.token !== lease.token || current.released) fail("RL3005", `The lease on ${lease.address} is lost.`);
    const at = this.#now();
    const renewed = {
      ...current,
      owner: owner ?? current.owner,
      renewedAt: at.toISOString(),
      expiresAt: new Date(at.getTime() + ttlMs).toISOString(),
    };
    this.#state.leases.set(lease.address, renewed);
    return renewed;
  }
  async releaseLease(lease: LeaseRecord): Promise<void> {
    const current = this.#state.leases.get(lease.address);
    if (current?.token === lease.token) this.#state.leases.set(lease.address, { ...current, released: true });
  }
  #isHeld(lease: LeaseRecord): boolean {
    return !lease.released && Date.parse(lease.expiresAt) > this.#now().getTime() && isAlive(lease.owner.process);
  }
  #check(address: Address, { expect, fence }: WriteOptions): number {
    const lease = this.#state.leases.get(address);
    if (lease?.token !== fence || lease.released) fail("RL3005", `The lease on ${address} is lost.`);
    const stored = this.#state.records.get(address);
    const current = stored?.record ? stored.version : 0;
    if (current !== expect) fail("RL3002", `The record of ${address} has changed.`);
    if (this.#state.failAfter !== undefined && this.#state.failAfter-- <= 0) fail("RL3004", "No space left.");
    return (stored?.version ?? 0) + 1;
  }
}
