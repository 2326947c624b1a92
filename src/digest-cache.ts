/**
 * Digests of files, remembered by path: a file is read again only if its size, modification time or inode changed, so a plan
 * over gigabytes of traces is quick. The cache is a hint that may be lost; writing it never fails a command.
 */
import { readFileSync, statSync } from "node:fs";
import { type Digest, digestFile } from "./digest.ts";
import { writeFileWhole } from "./files.ts";

interface Entry {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ino: number;
  readonly digest: Digest;
}

/** A file changed this recently may change again within the clock's resolution: its digest is not kept. */
const SETTLED_AFTER_MS = 2000;

export class DigestCache {
  readonly #path: string;
  readonly #entries: Map<string, Entry>;
  #isDirty = false;

  constructor(path: string) {
    this.#path = path;
    this.#entries = new Map(Object.entries(readEntries(path)));
  }

  /** Digest of a file's content. Throws what reading it throws. */
  async digest(path: string, signal?: AbortSignal): Promise<Digest> {
    const { size, mtimeMs, ino } = statSync(path);
    const known = this.#entries.get(path);
    if (known && known.size === size && known.mtimeMs === mtimeMs && known.ino === ino) return known.digest;
    const digest = await digestFile(path, signal);
    if (Date.now() - mtimeMs > SETTLED_AFTER_MS) {
      this.#entries.set(path, { size, mtimeMs, ino, digest });
      this.#isDirty = true;
    }
    return digest;
  }

  save(): void {
    if (!this.#isDirty) return;
    try {
      writeFileWhole(this.#path, JSON.stringify({ formatVersion: 1, files: Object.fromEntries(this.#entries) }), {
        durable: false,
      });
      this.#isDirty = false;
    } catch {
      // A read-only folder: the next plan hashes again.
    }
  }
}

function readEntries(path: string): Record<string, Entry> {
  try {
    const stored = JSON.parse(readFileSync(path, "utf8")) as { formatVersion: number; files: Record<string, Entry> };
    return stored.formatVersion === 1 ? stored.files : {};
  } catch {
    return {};
  }
}
