/**
 * Futures: what a submit returns at once and retrieve_future waits for. A result stays readable for as long as its
 * session lives and a while after, so that a client that was cut off can ask again.
 */

import type { SampleResult } from "../sampler.ts";
import type { PassResult } from "../trainer.ts";
import { Waiters } from "./waiters.ts";

/** A result before encoding: passes and samples have a JSON and a protobuf form, the rest is JSON. */
export type FutureResult =
  | { readonly type: "pass"; readonly pass: PassResult }
  | { readonly type: "sample"; readonly sample: SampleResult }
  | { readonly type: "json"; readonly body: Readonly<Record<string, unknown>> };

export type Outcome =
  | { readonly ok: true; readonly result: FutureResult }
  | { readonly ok: false; readonly error: string; readonly category: "user" | "server" };

interface Future {
  /** The session that keeps the result alive; undefined for requests outside of sessions. */
  readonly session: string | undefined;
  /** Nothing but its own result comes of it: nobody misses it when its session is over. */
  readonly isSample: boolean;
  /** Why it has not started, where there is something to say. */
  reason?: string | undefined;
  outcome?: Outcome;
  settledAt?: number;
  readonly waiters: Waiters;
}

/** Results of one session beyond this many are dropped, oldest first. */
const MOST_SETTLED = 4096;
/** How long results outlive their session or, without one, their completion. */
const KEEP_MS = 600_000;

export class Futures {
  readonly #prefix: string;
  readonly #futures = new Map<string, Future>();
  readonly #dropped = new Set<string>();
  #next = 1;
  #open = 0;

  /** `prefix` tells ids of this server's life from those of an earlier one. */
  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** How many have no outcome yet. */
  get open(): number {
    return this.#open;
  }

  create(session: string | undefined, { isSample = false } = {}): string {
    const id = `${this.#prefix}-${this.#next++}`;
    this.#futures.set(id, { session, isSample, waiters: new Waiters() });
    this.#open += 1;
    return id;
  }

  /** The session that a request belongs to. */
  sessionOf(id: string): string | undefined {
    return this.#futures.get(id)?.session;
  }

  explain(id: string, reason: string | undefined): void {
    const future = this.#futures.get(id);
    if (future) future.reason = reason;
  }

  settle(id: string, outcome: Outcome): void {
    const future = this.#futures.get(id);
    if (future === undefined || future.outcome !== undefined) return;
    future.outcome = outcome;
    future.settledAt = Date.now();
    this.#open -= 1;
    future.waiters.wake();
  }

  /** Gives up the samples of a session that are still being computed; returns them. Whoever asks is told that they are gone. */
  abandonSamples(session: string): readonly string[] {
    const abandoned: string[] = [];
    for (const [id, future] of this.#futures) {
      if (future.session !== session || !future.isSample || future.outcome !== undefined) continue;
      abandoned.push(id);
      this.#open -= 1;
      this.#drop(id);
      future.waiters.wake();
    }
    return abandoned;
  }

  /** The outcome, as soon as there is one or after `holdMs`; "unknown" or "gone" where there is no such future. */
  async wait(
    id: string,
    holdMs: number,
    signal: AbortSignal,
  ): Promise<Outcome | { readonly pending: true; readonly reason: string | undefined } | "unknown" | "gone"> {
    const future = this.#futures.get(id);
    if (future === undefined) return this.#dropped.has(id) ? "gone" : "unknown";
    if (future.outcome === undefined) await future.waiters.wait(holdMs, signal);
    return future.outcome ?? { pending: true, reason: future.reason };
  }

  /** Drops old results: those of sessions that are gone after a while, and a session's oldest beyond a number. */
  sweep(isLive: (session: string) => boolean): void {
    const counts = new Map<string, number>();
    const now = Date.now();
    for (const [id, { session, settledAt }] of [...this.#futures].reverse()) {
      if (settledAt === undefined) continue;
      const count = (counts.get(session ?? "") ?? 0) + 1;
      counts.set(session ?? "", count);
      const isOld = now - settledAt > KEEP_MS && !(session !== undefined && isLive(session));
      if (isOld || count > MOST_SETTLED) this.#drop(id);
    }
  }

  #drop(id: string): void {
    this.#futures.delete(id);
    this.#dropped.add(id);
    // Only to answer 410 instead of 404; forgetting some is harmless.
    if (this.#dropped.size > MOST_SETTLED * 4) this.#dropped.clear();
  }
}
