/** At most so many of a kind of work at once; the others wait, in order of asking. */
export class Limit {
  readonly #size: number;
  readonly #queue: (() => void)[] = [];
  #running = 0;

  /** `size` may be infinite. */
  constructor(size: number) {
    this.#size = size;
  }

  async run<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running >= this.#size) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#running += 1;
    try {
      return await work();
    } finally {
      // The place goes to who has waited longest.
      const next = this.#queue.shift();
      if (next) next();
      else this.#running -= 1;
    }
  }
}
