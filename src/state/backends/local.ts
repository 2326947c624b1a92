/** State in a folder of the project (`.rlcli/state/`): one versioned file per record and per lease. */
import { randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { hostname } from "node:os";
import { join, relative } from "node:path";
import type { Address } from "../../address.ts";
import { type Diagnostic, diagnostic, fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { syncFolder, temporaryName, writeFileWhole } from "../../files.ts";
import { isAlive } from "../../process.ts";
import {
  type LeaseOwner,
  type LeaseRecord,
  STATE_VERSION,
  type StateRecord,
  type StateRecordDraft,
} from "../../state-record.ts";
import type { StateListing, StateStore, WriteOptions } from "../store.ts";
import { DamagedFile, VersionedFolder } from "../versioned.ts";

export class LocalStateStore implements StateStore {
  readonly description: string;
  readonly #folder: string;
  readonly #records: VersionedFolder<StateRecord>;
  readonly #leases: VersionedFolder<LeaseRecord>;
  readonly #now: () => Date;

  /** `folder` is absolute; nothing is created before the first write. */
  constructor(folder: string, options: { now?: () => Date } = {}) {
    this.description = folder;
    this.#folder = folder;
    this.#records = new VersionedFolder(join(folder, "records"));
    this.#leases = new VersionedFolder(join(folder, "leases"));
    this.#now = options.now ?? (() => new Date());
  }

  async lineage(): Promise<string | undefined> {
    try {
      return (JSON.parse(readFileSync(join(this.#folder, "lineage.json"), "utf8")) as { lineage: string }).lineage;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
      return fail(
        "RL3001",
        `${this.#display("lineage.json")} cannot be read: ${messageOf(error)}. Restore it from a copy.`,
      );
    }
  }

  async list(): Promise<StateListing> {
    const records = new Map<Address, StateRecord>();
    const diagnostics: Diagnostic[] = [];
    for (const [key, version] of this.#records.versions()) {
      try {
        let found: StateRecord | undefined;
        try {
          found = this.#records.readVersion(key, version).value;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
          found = this.#records.read(key)?.value;
        }
        if (found) records.set(key as Address, checked(found, this.#display(`records/${key}@${version}.json`)));
      } catch (error) {
        diagnostics.push(...this.#damage(error).diagnostics);
      }
    }
    return { records, diagnostics };
  }

  async read(address: Address): Promise<StateRecord | undefined> {
    try {
      const value = this.#records.read(address)?.value;
      return value && checked(value, this.#display(`records/${address}@${value.version}.json`));
    } catch (error) {
      throw this.#damage(error);
    }
  }

  async write(draft: StateRecordDraft, { expect, fence }: WriteOptions): Promise<StateRecord> {
    this.#checkFence(draft.address, fence);
    const base = this.#fileVersion(draft.address, expect);
    const record: StateRecord = {
      formatVersion: STATE_VERSION,
      ...draft,
      version: base + 1,
      updatedAt: this.#now().toISOString(),
      fence,
    };
    this.#ensureLineage();
    if (!this.#put(this.#records, draft.address, base, record)) this.#conflict(draft.address);
    return record;
  }

  async remove(address: Address, { expect, fence }: WriteOptions): Promise<void> {
    this.#checkFence(address, fence);
    if (!this.#put(this.#records, address, this.#fileVersion(address, expect), null)) this.#conflict(address);
  }

  async leases(): Promise<readonly LeaseRecord[]> {
    const held: LeaseRecord[] = [];
    for (const key of this.#leases.versions().keys()) {
      const lease = this.#lease(key as Address);
      if (lease && this.#isHeld(lease)) held.push(lease);
    }
    return held;
  }

  async takeLease(address: Address, owner: LeaseOwner, ttlMs: number): Promise<LeaseRecord> {
    for (let attempt = 0; attempt < 5; attempt++) {
      const current = this.#lease(address);
      if (current && this.#isHeld(current)) {
        const { purpose, process, host } = current.owner;
        fail(
          "RL3003",
          `${address} is being worked on by ${purpose} (pid ${process.pid} on ${host}) since ${current.acquiredAt}. ` +
            "Wait for it to end, watch it with `rlcli logs -f`, or stop a run with `rlcli stop`; a dead process's lease ends by itself.",
          { address },
        );
      }
      const at = this.#now();
      const lease: LeaseRecord = {
        formatVersion: STATE_VERSION,
        address,
        token: (current?.token ?? 0) + 1,
        owner,
        acquiredAt: at.toISOString(),
        renewedAt: at.toISOString(),
        expiresAt: new Date(at.getTime() + ttlMs).toISOString(),
        released: false,
      };
      if (this.#put(this.#leases, address, lease.token - 1, lease)) return lease;
    }
    return this.#conflict(address);
  }

  async renewLease(lease: LeaseRecord, ttlMs: number, owner?: LeaseOwner): Promise<LeaseRecord> {
    const current = this.#lease(lease.address);
    if (current?.token !== lease.token || current.released) this.#lost(lease.address);
    const at = this.#now();
    const renewed: LeaseRecord = {
      ...current,
      owner: owner ?? current.owner,
      renewedAt: at.toISOString(),
      expiresAt: new Date(at.getTime() + ttlMs).toISOString(),
    };
    this.#amend(renewed);
    return renewed;
  }

  async releaseLease(lease: LeaseRecord): Promise<void> {
    try {
      const current = this.#lease(lease.address);
      if (current?.token === lease.token && !current.released) this.#amend({ ...current, released: true });
    } catch {
      // A lease that cannot be marked released (full disk) ends by expiry or by its process's death.
    }
  }

  #lease(address: Address): LeaseRecord | undefined {
    try {
      return this.#leases.read(address)?.value;
    } catch (error) {
      throw this.#damage(error);
    }
  }

  #isHeld(lease: LeaseRecord): boolean {
    if (lease.released || Date.parse(lease.expiresAt) <= this.#now().getTime()) return false;
    return lease.owner.host !== hostname() || isAlive(lease.owner.process);
  }

  #checkFence(address: Address, fence: number): void {
    const lease = this.#lease(address);
    if (lease?.token !== fence || lease.released) this.#lost(address);
  }

  /** File version that stands for record version `expect`: after a removal the file is newer than "no record". */
  #fileVersion(address: Address, expect: number): number {
    if (expect > 0) return expect;
    try {
      const current = this.#records.read(address);
      return current && current.value === undefined ? current.version : 0;
    } catch (error) {
      throw this.#damage(error);
    }
  }

  #put<T>(folder: VersionedFolder<T>, key: string, expect: number, value: T | null): boolean {
    try {
      return folder.write(key, expect, value);
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  #amend(lease: LeaseRecord): void {
    try {
      this.#leases.amend(lease.address, lease.token, lease);
    } catch (error) {
      throw this.#unwritable(error);
    }
  }

  /** Two first writers agree: the file is made by link, so one of them makes it and the other finds it. */
  #ensureLineage(): void {
    const path = join(this.#folder, "lineage.json");
    try {
      readFileSync(path);
      return;
    } catch {
      // Not there yet.
    }
    const temporary = temporaryName(path);
    try {
      mkdirSync(this.#folder, { recursive: true });
      writeFileWhole(temporary, `${JSON.stringify({ formatVersion: STATE_VERSION, lineage: randomUUID() })}\n`);
      linkSync(temporary, path);
      syncFolder(this.#folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw this.#unwritable(error);
    } finally {
      rmSync(temporary, { force: true });
    }
  }

  #damage(error: unknown): RlcliError {
    if (error instanceof RlcliError) return error;
    if (!(error instanceof DamagedFile)) return this.#unreadable(error);
    const copy = error.intact
      ? ` The version before it is intact: removing the damaged file goes back to ${this.#display(error.intact)}.`
      : " There is no earlier version; remove the file to forget this address, and plan again.";
    return new RlcliError(
      diagnostic("RL3001", `${this.#display(error.path)} does not hold a state record: ${error.message}.${copy}`),
    );
  }

  #unreadable(error: unknown): RlcliError {
    return new RlcliError(
      diagnostic(
        "RL3008",
        `The state in ${this.#folder} cannot be read: ${messageOf(error)}. Check the folder's permissions.`,
      ),
      { cause: error },
    );
  }

  #unwritable(error: unknown): RlcliError {
    if (error instanceof RlcliError) return error;
    return new RlcliError(
      diagnostic(
        "RL3004",
        `The state in ${this.#folder} cannot be written: ${messageOf(error)}. Free space or fix its permissions.`,
      ),
      { cause: error },
    );
  }

  #conflict(address: Address): never {
    return fail(
      "RL3002",
      `The record of ${address} has changed since it was read; nothing was overwritten. Plan again.`,
      {
        address,
      },
    );
  }

  #lost(address: Address): never {
    return fail(
      "RL3005",
      `The lease on ${address} is held by someone else by now, so this write was refused. Plan again to see where things stand.`,
      { address },
    );
  }

  #display(path: string): string {
    const absolute = path.startsWith("/") ? path : join(this.#folder, path);
    return relative(join(this.#folder, "../.."), absolute);
  }
}

function checked(record: StateRecord, where: string): StateRecord {
  if (record?.formatVersion > STATE_VERSION) {
    fail(
      "RL3006",
      `${where} has formatVersion ${record.formatVersion}; this rlcli reads up to ${STATE_VERSION}. Use the newer one.`,
    );
  }
  if (typeof record?.address !== "string" || typeof record.hash !== "string" || typeof record.attributes !== "object") {
    fail(
      "RL3001",
      `${where} lacks required fields, so it is not a state record. Remove it to go back to the version before.`,
    );
  }
  return record;
}
