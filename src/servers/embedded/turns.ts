/**
 * Whose operation is next: the operations of one model keep their order, and models take turns, so that one with a long
 * queue does not hold up the others.
 */
export class Turns<T> {
  /** Queues by model; the first has waited longest for its turn. */
  readonly #queues = new Map<string, T[]>();

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  add(model: string, item: T): void {
    const queue = this.#queues.get(model);
    if (queue) queue.push(item);
    else this.#queues.set(model, [item]);
  }

  /** Takes the next one; its model goes to the end of the line. */
  take(): T | undefined {
    const first = this.#queues.entries().next();
    if (first.done) return undefined;
    const [model, queue] = first.value;
    const item = queue.shift();
    this.#queues.delete(model);
    if (queue.length > 0) this.#queues.set(model, queue);
    return item;
  }
}
