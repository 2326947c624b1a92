/**
 * Leases with a heartbeat. Work on an address happens inside `withLease`: it is renewed while the work runs, released
 * whatever happens, and can be handed over to a worker process that outlives this one.
 */
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import type { Address } from "../address.ts";
import { RlcliError } from "../diagnostic.ts";
import type { HeldLease } from "../kind.ts";
import { ownIdentity } from "../process.ts";
import type { LeaseOwner, LeaseRecord } from "../state-record.ts";
import type { StateStore } from "./store.ts";

/** A holder that is seen dead on its own host loses the lease at once; elsewhere only when this time has passed. */
export const LEASE_TTL_MS = 60_000;
const RENEW_EVERY_MS = 15_000;

export function leaseOwner(purpose: string): LeaseOwner {
  return {
    id: randomUUID(),
    host: hostname(),
    process: ownIdentity(),
    purpose,
  };
}

/**
 * Renews until closed. `onLost` hears once that someone else has the lease; a store that cannot be used at the moment (a full disk)
 * is tried again at the next beat.
 */
export class Heartbeat {
  #lease: LeaseRecord;
  readonly #store: StateStore;
  readonly #timer: NodeJS.Timeout;
  constructor(store: StateStore, lease: LeaseRecord, onLost: () => void) {
    this.#store = store;
    this.#lease = lease;
    this.#timer = setInterval(() => {
      this.#store.renewLease(this.#lease, LEASE_TTL_MS).then(
        (renewed) => {
          this.#lease = renewed;
        },
        (error: unknown) => {
          if (error instanceof RlcliError && error.diagnostics[0]?.code !== "RL3005") return;
          this.close();
          onLost();
        },
      );
    }, RENEW_EVERY_MS);
    this.#timer.unref();
  }
  get lease(): LeaseRecord {
    return this.#lease;
  }
  close(): void {
    clearInterval(this.#timer);
  }
}

/** Takes the lease of an address, works, and lets go on every path. */
export async function withLease<T>(
  store: StateStore,
  address: Address,
  purpose: string,
  work: (lease: HeldLease) => Promise<T>,
): Promise<T> {
  const lease = await store.takeLease(address, leaseOwner(purpose), LEASE_TTL_MS);
  let isHandedOver = false;
  // A lost lease is not acted on here: the next write is refused by its fence, which is the guarantee.
  const heartbeat = new Heartbeat(store, lease, () => {});
  try {
    return await work({
      record: lease,
      handOver: () => {
        isHandedOver = true;
        heartbeat.close();
      },
    });
  } finally {
    heartbeat.close();
    if (!isHandedOver) await store.releaseLease(lease);
  }
}
