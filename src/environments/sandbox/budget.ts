/** Places and memory for sandboxes: who asks first is served first, so that a large one is not passed by for ever. */
import { SandboxMeter } from "./meter.ts";

interface Waiting {
  readonly bytes: number;
  readonly grant: () => void;
}

export class Budget {
  readonly #places: number;
  readonly #bytes: number;
  readonly #onRoom: () => void;
  readonly #meter: SandboxMeter;
  readonly #queue: Waiting[] = [];
  #used = 0;
  #usedBytes = 0;

  /** Both numbers may be infinite. `onRoom` is called when there may be room that nobody waits for; `meter` counts what is taken. */
  constructor(places: number, bytes: number, onRoom: () => void = () => {}, meter = new SandboxMeter()) {
    this.#places = places;
    this.#bytes = bytes;
    this.#onRoom = onRoom;
    this.#meter = meter;
    meter.addPlaces(places);
  }

  /** What gives the place back; undefined where there is none, or somebody waits. */
  tryTake(bytes: number): (() => void) | undefined {
    if (this.#queue.length > 0 || !this.#fits(bytes)) return undefined;
    this.#use(bytes);
    return this.#releaseOf(bytes);
  }

  /** Places that are taken or waited for, as a share of all. */
  get load(): number {
    return (this.#used + this.#queue.length) / this.#places;
  }

  /** What would have to be given back before one of so many bytes fits; not above 0 where nothing has. */
  lacking(bytes: number): { readonly places: number; readonly bytes: number } {
    return { places: this.#used + 1 - this.#places, bytes: this.#usedBytes + bytes - this.#bytes };
  }

  /** Resolves to what gives the place back, once. One that needs more than there is waits until it is alone. */
  async take(bytes: number, signal?: AbortSignal): Promise<() => void> {
    signal?.throwIfAborted();
    const release = this.tryTake(bytes);
    if (release) return release;
    await this.#wait(bytes, signal);
    return this.#releaseOf(bytes);
  }

  #releaseOf(bytes: number): () => void {
    let isHeld = true;
    return () => {
      if (!isHeld) return;
      isHeld = false;
      this.#used -= 1;
      this.#meter.add(-1);
      this.#usedBytes -= bytes;
      this.#serve();
    };
  }

  #fits(bytes: number): boolean {
    return this.#used === 0 || (this.#used < this.#places && this.#usedBytes + bytes <= this.#bytes);
  }

  #use(bytes: number): void {
    this.#used += 1;
    this.#meter.add(1);
    this.#usedBytes += bytes;
  }

  #wait(bytes: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAbort = (): void => {
        const at = this.#queue.indexOf(waiting);
        if (at >= 0) this.#queue.splice(at, 1);
        reject(signal?.reason);
        this.#serve();
      };
      const waiting: Waiting = {
        bytes,
        grant: () => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        },
      };
      this.#queue.push(waiting);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  #serve(): void {
    for (let next = this.#queue[0]; next && this.#fits(next.bytes); next = this.#queue[0]) {
      this.#queue.shift();
      this.#use(next.bytes);
      next.grant();
    }
    if (this.#queue.length === 0) this.#onRoom();
  }
}
