/** How often a server that crashes is started again, and after what pause. */

const WINDOW_MS = 600_000;
const MOST = 3;
const PAUSES_MS = [1000, 5000, 15_000] as const;

export class Restarts {
  readonly #now: () => number;
  #at: readonly number[] = [];
  #total = 0;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  get total(): number {
    return this.#total;
  }

  /** Milliseconds to wait before the next start; undefined where it has crashed too often lately to try again. */
  next(): number | undefined {
    const now = this.#now();
    this.#at = this.#at.filter((at) => now - at < WINDOW_MS);
    if (this.#at.length >= MOST) return undefined;
    const pause = PAUSES_MS[this.#at.length];
    this.#at = [...this.#at, now];
    this.#total += 1;
    return pause;
  }
}
