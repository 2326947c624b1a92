/**
 * All that rlcli remembers, behind one interface: records by address with compare-and-swap, and leases with fencing.
 * `backends/` holds the implementations; one test suite runs over all of them.
 */
import type { Address } from "../address.ts";
import type { Diagnostic } from "../diagnostic.ts";
import type { LeaseOwner, LeaseRecord, StateRecord, StateRecordDraft } from "../state-record.ts";

export interface StateListing {
  readonly records: ReadonlyMap<Address, StateRecord>;
  /** Records that could not be read; the rest is still returned. */
  readonly diagnostics: readonly Diagnostic[];
}

export interface WriteOptions {
  /** The version the writer read; 0 for a record that did not exist. */
  readonly expect: number;
  /** Token of the lease held on the address. */
  readonly fence: number;
}

/**
 * What an implementation guarantees:
 * - `write` and `remove` happen wholly or not at all, are durable when they return, and fail with RL3002 unless the stored
 *   version is exactly `expect`; versions never repeat for an address, also across `remove`.
 * - They fail with RL3005 if `fence` is not the newest lease token of the address.
 * - At most one holder believes itself the newest at a time: a lease is taken over only when it was released, has
 *   expired, or its process is seen dead on this host. A holder that sleeps past its expiry finds out at its next write.
 * What it need not do: order writes to different addresses, or notify anyone.
 */
export interface StateStore {
  /** For messages: where the state is. */
  readonly description: string;
  /** Random id given to a state when it is first written; undefined before that. */
  lineage(): Promise<string | undefined>;
  list(): Promise<StateListing>;
  read(address: Address): Promise<StateRecord | undefined>;
  write(draft: StateRecordDraft, options: WriteOptions): Promise<StateRecord>;
  remove(address: Address, options: WriteOptions): Promise<void>;
  leases(): Promise<readonly LeaseRecord[]>;
  /** Fails with RL3003, naming the holder, while someone else works on the address. */
  takeLease(address: Address, owner: LeaseOwner, ttlMs: number): Promise<LeaseRecord>;
  /** Extends a lease, or hands it to another owner under the same token. Fails with RL3005 if it is no longer the newest. */
  renewLease(lease: LeaseRecord, ttlMs: number, owner?: LeaseOwner): Promise<LeaseRecord>;
  /** Never fails for a lease that is lost already. */
  releaseLease(lease: LeaseRecord): Promise<void>;
}
