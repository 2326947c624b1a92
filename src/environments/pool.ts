/** A bounded set of helpers (processes, threads, sandboxes): each is used by one at a time, and one that broke is replaced. */

export interface Pooled {
  /** False once it broke; it is then closed and not used again. */
  readonly isUsable: boolean;
  close(): void | Promise<void>;
}

export class Pool<T extends Pooled> {
  readonly #size: number;
  readonly #create: () => T;
  readonly #idle: T[] = [];
  readonly #all = new Set<T>();
  readonly #queue: (() => void)[] = [];
  #inUse = 0;
  #isClosed = false;

  constructor(size: number, create: () => T) {
    this.#size = Math.max(1, size);
    this.#create = create;
  }

  /** Waits for a free helper, in order of asking, and hands it back however the work ends. */
  async use<R>(work: (helper: T) => Promise<R>): Promise<R> {
    if (this.#inUse >= this.#size) await new Promise<void>((resolve) => this.#queue.push(resolve));
    else this.#inUse += 1;
    if (this.#isClosed) {
      this.#passOn();
      throw new Error("the pool is closed");
    }
    try {
      return await this.#lend(this.#take(), work);
    } finally {
      this.#passOn();
    }
  }

  async #lend<R>(helper: T, work: (helper: T) => Promise<R>): Promise<R> {
    try {
      return await work(helper);
    } finally {
      if (helper.isUsable && !this.#isClosed) this.#idle.push(helper);
      else await this.#drop(helper);
    }
  }

  /** Ends all helpers, also those in use; whoever waits is turned away. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#all].map((helper) => this.#drop(helper)));
    for (const waiting of this.#queue.splice(0)) waiting();
  }

  #take(): T {
    const idle = this.#idle.pop();
    if (idle?.isUsable) return idle;
    if (idle) void this.#drop(idle);
    const helper = this.#create();
    this.#all.add(helper);
    return helper;
  }

  async #drop(helper: T): Promise<void> {
    this.#all.delete(helper);
    await helper.close();
  }

  /** The place goes to who has waited longest, or becomes free. */
  #passOn(): void {
    const next = this.#queue.shift();
    if (next) next();
    else this.#inUse -= 1;
  }
}
