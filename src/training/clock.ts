/** How long steps take, for progress and estimates. */

/** Time per step: steps overlap, so one counts from the end of the one before. */
export class Clock {
  #last = 0;
  #mean: number | undefined;

  secondsSince(sentAt: number): number {
    const now = performance.now();
    const seconds = (now - Math.max(this.#last, sentAt)) / 1000;
    this.#last = now;
    this.#mean = this.#mean === undefined ? seconds : this.#mean * 0.8 + seconds * 0.2;
    return seconds;
  }

  eta(steps: number): number {
    return Math.round(steps * (this.#mean ?? 0) * 10) / 10;
  }
}
