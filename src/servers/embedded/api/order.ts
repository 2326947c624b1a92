/**
 * The order of a model's calls. Calls with a `seq_id` start in its order, from 1 on, waiting for missing numbers; a
 * repeat of a number with the same content is the same call, with other content a conflict. Calls without a number start
 * at once. The compute thread runs what was started in the order it was started.
 *
 * A call that was refused leaves a number that no other call may ever have: the SDKs go on with the next one. So its
 * number is passed over, and a corrected call that still comes under it starts at once.
 */
import type { Digest } from "../../../digest.ts";
import { refuse } from "./errors.ts";

interface Call {
  readonly digest: Digest;
  readonly requestId: string;
}

/** How far back repeats are still recognised. */
const MOST_REMEMBERED = 4096;

export class CallOrder {
  readonly #seen = new Map<number, Call>();
  readonly #waiting = new Map<number, () => void>();
  /** Numbers of refused calls. */
  readonly #refused = new Set<number>();
  #next = 1;

  /** The number that is waited for. */
  get next(): number {
    return this.#next;
  }

  /** The request of an earlier call of this number, if this is a repeat. 409 where the content differs. */
  repeatOf(seq: number | undefined, digest: Digest): string | undefined {
    if (seq === undefined) return undefined;
    const seen = this.#seen.get(seq);
    if (seen?.digest === digest) return seen.requestId;
    if (seen !== undefined || (seq < this.#next && !this.#refused.has(seq)))
      refuse(409, `Training request sequence number ${seq} was reused for another request.`);
    return undefined;
  }

  /** Starts the call now or when its number has come. `seq` must have passed `repeatOf`. Tells whether it waits. */
  add(seq: number | undefined, call: Call, start: () => void): boolean {
    if (seq === undefined) {
      start();
      return false;
    }
    this.#seen.set(seq, call);
    if (this.#refused.delete(seq) && seq < this.#next) {
      start();
      return false;
    }
    this.#waiting.set(seq, start);
    this.#drain();
    for (const old of this.#seen.keys()) {
      if (this.#seen.size <= MOST_REMEMBERED) break;
      if (old < this.#next) this.#seen.delete(old);
    }
    return this.#waiting.has(seq);
  }

  /** The call of this number was refused: those after it need not wait for it. */
  refuse(seq: number | undefined): void {
    if (seq === undefined || seq < this.#next || this.#seen.has(seq)) return;
    this.#refused.add(seq);
    this.#drain();
    for (const old of this.#refused) {
      if (this.#refused.size <= MOST_REMEMBERED) break;
      this.#refused.delete(old);
    }
  }

  /** Starts all that wait, missing numbers or not: for a model that is gone, so that they fail instead of waiting. */
  flush(): void {
    const rest = [...this.#waiting].sort(([a], [b]) => a - b);
    this.#waiting.clear();
    for (const [seq, start] of rest) {
      this.#next = Math.max(this.#next, seq + 1);
      start();
    }
  }

  #drain(): void {
    for (;;) {
      const start = this.#waiting.get(this.#next);
      if (start === undefined && !this.#refused.has(this.#next)) return;
      this.#waiting.delete(this.#next);
      this.#next += 1;
      start?.();
    }
  }
}

/** Calls identified by a number but in no order: models and samplers of a session, samples of a sampler. */
export class CallNumbers {
  readonly #seen = new Map<number, Call>();

  repeatOf(seq: number | undefined, digest: Digest, what: string): string | undefined {
    const seen = seq === undefined ? undefined : this.#seen.get(seq);
    if (seen !== undefined && seen.digest !== digest) refuse(409, `${what} ${seq} was reused for another request.`);
    return seen?.requestId;
  }

  add(seq: number | undefined, call: Call): void {
    if (seq === undefined) return;
    this.#seen.set(seq, call);
    for (const old of this.#seen.keys()) {
      if (this.#seen.size <= MOST_REMEMBERED) break;
      this.#seen.delete(old);
    }
  }
}
