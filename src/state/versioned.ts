/**
 * A folder of versioned files, `key@version.json`: the newest version of a key is its value. A new version appears by
 * link(2), which fails if the name is taken, so creating version n+1 is a compare-and-swap on n without any lock that a
 * dead process could leave behind. The version before is kept, as a copy to go back to by hand.
 */
import { randomUUID } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
} from "node:fs";
import { syncFolder, temporaryName, writeFileWhole, writeFully } from "../files.ts";

/** What a file holds: the value, and which write made it, so that a writer can tell its own from a rival's. */
interface Envelope<T> {
  readonly write: string;
  /** The `write` of the version before; undefined for the first. */
  readonly after?: string;
  /** Null marks the end of a key: it reads as absent but keeps its version. */
  readonly value: T | null;
}

export interface Versioned<T> {
  readonly version: number;
  /** Undefined where the key was removed. */
  readonly value: T | undefined;
}

/** A file that does not hold an envelope. */
export class DamagedFile extends Error {
  readonly path: string;
  /** An older version of the same key that still reads. */
  readonly intact: string | undefined;
  constructor(path: string, reason: string, intact: string | undefined) {
    super(reason);
    this.path = path;
    this.intact = intact;
  }
}

const KEPT_VERSIONS = 2;

export class VersionedFolder<T> {
  readonly folder: string;
  /** Highest version seen per key; a hint to probe from, never the truth. */
  readonly #seen = new Map<string, number>();
  constructor(folder: string) {
    this.folder = folder;
  }

  /** Newest version number of every key. */
  versions(): ReadonlyMap<string, number> {
    const newest = new Map<string, number>();
    for (const name of this.#names()) {
      const file = parseName(name);
      if (file && file.version > (newest.get(file.key) ?? 0)) newest.set(file.key, file.version);
    }
    for (const [key, version] of newest) this.#seen.set(key, version);
    return newest;
  }

  /** Undefined for a key that never was. Throws DamagedFile. */
  read(key: string): Versioned<T> | undefined {
    for (;;) {
      const version = this.#newest(key);
      if (version === 0) return undefined;
      try {
        return this.readVersion(key, version);
      } catch (error) {
        // Pruned between the look and the read: a newer version exists by now.
        if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
        this.#seen.delete(key);
      }
    }
  }

  readVersion(key: string, version: number): Versioned<T> {
    const { value } = this.#envelope(key, version);
    return { version, value: value ?? undefined };
  }

  /**
   * Writes the version after `expect` (0: none yet); a null value removes. False if another writer was first.
   */
  write(key: string, expect: number, value: T | null): boolean {
    mkdirSync(this.folder, { recursive: true });
    if (this.#newest(key) !== expect) return false;
    const write = randomUUID();
    const after = expect === 0 ? undefined : this.#writeOf(key, expect);
    const envelope: Envelope<T> = {
      write,
      ...(after === undefined ? {} : { after }),
      value,
    };
    if (!this.#link(key, expect + 1, envelope)) return false;
    this.#seen.set(key, expect + 1);
    // The check of `expect` and the link are two steps: if versions moved on and `expect + 1` was pruned in between, the
    // link lands below the newest. It counts only if nothing stands above it that was not written on top of it.
    const above = this.#newest(key);
    if (above > expect + 1 && !(above === expect + 2 && this.#after(key, above) === write)) {
      rmSync(this.#path(key, expect + 1), { force: true });
      return false;
    }
    for (let old = expect + 1 - KEPT_VERSIONS; old > 0 && existsSync(this.#path(key, old)); old--) {
      rmSync(this.#path(key, old), { force: true });
    }
    return true;
  }

  /** Rewrites a version in place: only for its owner, where last-writer-wins is right (a heartbeat). */
  amend(key: string, version: number, value: T): void {
    writeFileWhole(this.#path(key, version), encode({ write: this.#writeOf(key, version) ?? randomUUID(), value }));
  }

  /** Newest version of one key, probing upward from the last one seen; 0 if there is none. */
  #newest(key: string): number {
    let version = this.#seen.get(key) ?? 0;
    if (version === 0 || !existsSync(this.#path(key, version))) {
      version = 0;
      for (const name of this.#names()) {
        const file = parseName(name);
        if (file?.key === key && file.version > version) version = file.version;
      }
    }
    while (existsSync(this.#path(key, version + 1))) version += 1;
    this.#seen.set(key, version);
    return version;
  }

  #link(key: string, version: number, envelope: Envelope<T>): boolean {
    const path = this.#path(key, version);
    const temporary = temporaryName(path);
    try {
      const fd = openSync(temporary, "wx", 0o644);
      try {
        writeFully(fd, Buffer.from(encode(envelope)));
        fsyncSync(fd);
      } finally {
        closeSync(fd);
      }
      linkSync(temporary, path);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
      throw error;
    } finally {
      rmSync(temporary, { force: true });
    }
    syncFolder(this.folder);
    return true;
  }

  #envelope(key: string, version: number): Envelope<T> {
    const path = this.#path(key, version);
    const text = readFileSync(path, "utf8");
    try {
      const envelope = JSON.parse(text) as Envelope<T>;
      if (typeof envelope !== "object" || envelope === null || !("value" in envelope)) throw new Error("not a record");
      return envelope;
    } catch (error) {
      const older = this.#path(key, version - 1);
      throw new DamagedFile(path, (error as Error).message, existsSync(older) ? older : undefined);
    }
  }

  #writeOf(key: string, version: number): string | undefined {
    try {
      return this.#envelope(key, version).write;
    } catch {
      return undefined;
    }
  }

  #after(key: string, version: number): string | undefined {
    try {
      return this.#envelope(key, version).after;
    } catch {
      return undefined;
    }
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.folder);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return [];
      throw error;
    }
  }

  #path(key: string, version: number): string {
    // Not `join`: with thousands of records, normalising their paths is a tenth of a plan.
    return `${this.folder}/${key}@${version}.json`;
  }
}

function parseName(name: string): { key: string; version: number } | undefined {
  if (!name.endsWith(".json")) return undefined;
  const at = name.lastIndexOf("@");
  const version = Number(name.slice(at + 1, -".json".length));
  return at > 0 && Number.isSafeInteger(version) && version > 0 ? { key: name.slice(0, at), version } : undefined;
}

function encode(envelope: Envelope<unknown>): string {
  return `${JSON.stringify(envelope)}\n`;
}
