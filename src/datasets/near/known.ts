/**
 * The conversations that are kept, as far as others are compared with them: bands in memory, sets of shingles where they wait on the
 * disk. At the default threshold that is up to 360 bytes of memory for each, and while the table grows half as much again.
 */
import { similarity } from "./shingles.ts";

/** Conversations that one is compared with, those that share the most bands first: logs of one template are no reason to compare all with all. */
const MOST_COMPARED = 32;
/** Conversations that one band is kept of. */
const MOST_ALIKE = 256;
const SMALLEST = 1 << 12;

/** So many bytes of the sets' file from a byte on, in memory of their own. */
export type ReadSets = (position: number, length: number) => Buffer<ArrayBuffer>;

export class KnownConversations {
  readonly #threshold: number;
  readonly #read: ReadSets;
  /** Open addressing over pairs: a band's hash, and one more than the number of a conversation (0: an empty slot). */
  #slots = new Uint32Array(2 * SMALLEST);
  #used = 0;
  /** By conversation: the byte of the file where its set begins, and how many shingles it has. */
  #places = new Float64Array(SMALLEST);
  #sizes = new Uint32Array(SMALLEST);
  #count = 0;

  constructor(threshold: number, read: ReadSets) {
    this.#threshold = threshold;
    this.#read = read;
  }

  /**
   * Whether a conversation is like none that was kept before; it is then kept too. `bands`: its bands' hashes; `shingles`: its set,
   * sorted, which is in the file at byte `place` too.
   */
  add(bands: Uint32Array, shingles: Uint32Array, place: number): boolean {
    if (this.#candidates(bands).some((other) => this.#isLike(other, shingles))) return false;
    this.#keep(bands, shingles.length, place);
    return true;
  }

  /** Numbers of conversations to compare with, the likeliest first. */
  #candidates(bands: Uint32Array): number[] {
    const shared = new Map<number, number>();
    for (const band of bands) {
      for (let slot = this.#slotOf(band); this.#slots[slot + 1] !== 0; slot = this.#next(slot)) {
        if (this.#slots[slot] !== band) continue;
        const other = (this.#slots[slot + 1] as number) - 1;
        shared.set(other, (shared.get(other) ?? 0) + 1);
      }
    }
    const found = [...shared].sort(([a, m], [b, n]) => n - m || a - b);
    return found.slice(0, MOST_COMPARED).map(([other]) => other);
  }

  #isLike(other: number, shingles: Uint32Array): boolean {
    const size = this.#sizes[other] as number;
    // What differs that much in size cannot share enough.
    if (Math.min(size, shingles.length) / Math.max(size, shingles.length) < this.#threshold) return false;
    const { buffer, byteOffset } = this.#read(this.#places[other] as number, size * 4);
    return similarity(new Uint32Array(buffer, byteOffset, size), shingles) >= this.#threshold;
  }

  #keep(bands: Uint32Array, size: number, place: number): void {
    if (this.#count === this.#sizes.length) {
      this.#places = longer(this.#places, new Float64Array(this.#count * 2));
      this.#sizes = longer(this.#sizes, new Uint32Array(this.#count * 2));
    }
    this.#places[this.#count] = place;
    this.#sizes[this.#count] = size;
    this.#count += 1;
    if ((this.#used + bands.length) * 8 > this.#slots.length * 3) this.#grow();
    for (const band of bands) if (this.#put(band, this.#count)) this.#used += 1;
  }

  /** False where the band has enough already. */
  #put(band: number, entry: number): boolean {
    let slot = this.#slotOf(band);
    let alike = 0;
    for (; this.#slots[slot + 1] !== 0; slot = this.#next(slot)) if (this.#slots[slot] === band) alike += 1;
    if (alike >= MOST_ALIKE) return false;
    this.#slots[slot] = band;
    this.#slots[slot + 1] = entry;
    return true;
  }

  #slotOf(band: number): number {
    return (band << 1) & (this.#slots.length - 1) & ~1;
  }

  #next(slot: number): number {
    return (slot + 2) & (this.#slots.length - 1);
  }

  /** Entries of one band keep their order, so that the earliest are found first. */
  #grow(): void {
    const old = this.#slots;
    this.#slots = new Uint32Array(old.length * 2);
    // From the first empty slot on: a row of entries may go over the end.
    let first = 0;
    while (old[first + 1] !== 0) first += 2;
    for (let i = 0; i < old.length; i += 2) {
      const at = (first + i) & (old.length - 1);
      const entry = old[at + 1] as number;
      if (entry !== 0) this.#put(old[at] as number, entry);
    }
  }
}

function longer<T extends Float64Array | Uint32Array>(values: T, into: T): T {
  into.set(values);
  return into;
}
