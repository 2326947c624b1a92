/**
 * The trace of a run's requests, for whoever has to find out why a server did not answer. Lines are gathered and written together; they
 * are no record that anything is resumed from, so a crash may lose the last second of them, and a full disk all.
 */
import { appendFileSync, renameSync, statSync } from "node:fs";
import { RUN_RECORD_VERSION } from "../run-record.ts";
import type { Exchange } from "../tinker/exchange.ts";

const EVERY_MS = 1000;
const MOST_GATHERED = 256;
/** Of one file, of which there are two at the most: some ten thousand requests each. */
const MOST_BYTES = 2_000_000;

export interface WireLine extends Exchange {
  /** When it ended. */
  readonly at: string;
}

const HEADER = `${JSON.stringify({ formatVersion: RUN_RECORD_VERSION })}\n`;

export class WireTrace {
  readonly #path: string;
  readonly #now: () => Date;
  readonly #mostBytes: number;
  #gathered: string[] = [];
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(path: string, now: () => Date, mostBytes = MOST_BYTES) {
    this.#path = path;
    this.#now = now;
    this.#mostBytes = mostBytes;
  }

  add(exchange: Exchange): void {
    if (this.#isClosed) return;
    this.#gathered.push(`${JSON.stringify({ at: this.#now().toISOString(), ...exchange } satisfies WireLine)}\n`);
    if (this.#gathered.length >= MOST_GATHERED) this.#write();
    else this.#timer ??= setTimeout(() => this.#write(), EVERY_MS).unref();
  }

  #write(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const lines = this.#gathered.join("");
    this.#gathered = [];
    if (lines === "") return;
    try {
      const bytes = statSync(this.#path, { throwIfNoEntry: false })?.size ?? 0;
      const isFull = bytes > 0 && bytes + lines.length > this.#mostBytes;
      if (isFull) renameSync(this.#path, this.#path.replace(/\.jsonl$/, ".1.jsonl"));
      appendFileSync(this.#path, bytes === 0 || isFull ? HEADER + lines : lines);
    } catch {
      // What the disk does not take is missed by nobody but a person who looks for it.
    }
  }

  close(): void {
    this.#write();
    this.#isClosed = true;
  }
}
