/**
 * Which samples of a sampling session have finished, in the order they did: what retrieve_futures reports, so that one
 * poll serves a whole session (protocol document, 3.4).
 */

import { Waiters } from "./waiters.ts";

export interface Completion {
  readonly requestId: string;
  readonly ok: boolean;
}

export class Completions {
  /** From `#seen` on. */
  #events: Completion[] = [];
  /** How many before them have been acknowledged. */
  #seen = 0;
  readonly #waiters = new Waiters();

  add(completion: Completion): void {
    this.#events.push(completion);
    this.#waiters.wake();
  }

  /** Forgets the first `cursor` events; then those after it, as soon as there are any or after `holdMs`. */
  async after(
    cursor: number,
    holdMs: number,
    signal: AbortSignal,
  ): Promise<{ readonly completions: readonly Completion[]; readonly cursor: number }> {
    const acknowledged = Math.min(Math.max(cursor - this.#seen, 0), this.#events.length);
    this.#events = this.#events.slice(acknowledged);
    this.#seen += acknowledged;
    if (this.#events.length === 0 && holdMs > 0) await this.#waiters.wait(holdMs, signal);
    return { completions: this.#events, cursor: this.#seen + this.#events.length };
  }
}
