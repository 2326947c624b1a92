/** How many sandboxes of an environment are there, over all its daemons, those started ahead included. */
export class SandboxMeter {
  #inUse = 0;
  #places = 0;
  #most = 0;

  /** Now. */
  get inUse(): number {
    return this.#inUse;
  }

  /** At once at the most; may be infinite. */
  get places(): number {
    return this.#places;
  }

  addPlaces(places: number): void {
    this.#places += places;
  }

  add(change: 1 | -1): void {
    this.#inUse += change;
    this.#most = Math.max(this.#most, this.#inUse);
  }

  /** Most at once since this was last asked, or since the beginning. */
  takeMost(): number {
    const most = this.#most;
    this.#most = this.#inUse;
    return most;
  }
}
