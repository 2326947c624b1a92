/**
 * What state remembers of one address: small (under 2 KB), so that ten thousand are read in well under a second. Progress
 * in steps is not here but in the run record (`run-record.ts`), which is the authority for it.
 */
import type { Address } from "./address.ts";
import type { Digest } from "./digest.ts";
import type { ProcessIdentity } from "./process.ts";
import type { JsonObject, Value } from "./value.ts";

export const STATE_VERSION = 1;

/**
 * `working` while a lease holder is on it, `interrupted` after a graceful or found-dead stop, `failed` after an error;
 * `ready` when what the record describes is there.
 */
export type RecordStatus = "ready" | "working" | "interrupted" | "failed";

export interface StateRecord {
  readonly formatVersion: typeof STATE_VERSION;
  readonly address: Address;
  /** Grows by one with every write; what compare-and-swap compares. */
  readonly version: number;
  readonly status: RecordStatus;
  /** A run's generation, a dataset's identity, a server's settings. */
  readonly hash: Digest;
  /** Counts replacements of one generation, from 1. */
  readonly incarnation: number;
  /** Leaves as last applied, for the old side of a diff. Secrets are here by name only. */
  readonly attributes: Readonly<Record<string, Value>>;
  readonly dependsOn: readonly Address[];
  /** What the kind wants to find again: paths, final metrics, counts. */
  readonly results: JsonObject;
  /** `rlcli state taint`: the next apply makes it anew. Whoever writes the record after doing something leaves it out. */
  readonly tainted?: true;
  readonly updatedAt: string;
  /** Token of the lease under which this was written. */
  readonly fence: number;
}

/** What a writer supplies; the store adds version, time and fence. */
export type StateRecordDraft = Omit<StateRecord, "formatVersion" | "version" | "updatedAt" | "fence">;

export interface LeaseOwner {
  /** Unique to one holder, so that a re-entrant take cannot pass by accident. */
  readonly id: string;
  readonly host: string;
  readonly process: ProcessIdentity;
  /** For people: `rlcli apply`, `worker of run.agent`. */
  readonly purpose: string;
}

export interface LeaseRecord {
  readonly formatVersion: typeof STATE_VERSION;
  readonly address: Address;
  /** The fencing token: grows with every take. */
  readonly token: number;
  readonly owner: LeaseOwner;
  readonly acquiredAt: string;
  readonly renewedAt: string;
  readonly expiresAt: string;
  readonly released: boolean;
}
