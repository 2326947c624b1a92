/** Requests that hold their connection until something happens. */
export class Waiters {
  readonly #waiting = new Set<() => void>();

  /** Settles at the next `wake`, after `holdMs`, or when the client goes away. */
  wait(holdMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#waiting.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, holdMs);
      this.#waiting.add(done);
      signal.addEventListener("abort", done);
    });
  }

  wake(): void {
    for (const done of [...this.#waiting]) done();
  }
}
