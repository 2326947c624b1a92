/**
 * MinHash with bands (locality-sensitive hashing): sets that are alike have, with known probability, one band of hashes in common, and only those
 * are compared. One permutation gives all hashes (Li, Owen and Zhang 2012), and places that it leaves empty are filled from others, chosen alike
 * in all sets (optimal densification, Shrivastava 2017): a pass over the set, however many hashes. The probability that two sets agree
 * in a place is their similarity s; that they share a band, 1 − (1 − s^rows)^bands.
 */
import { mixed } from "./shingles.ts";

export interface Banding {
  readonly bands: number;
  /** Hashes in a band. */
  readonly rows: number;
}

/** Of pairs just at the threshold, this share is missed; of those above it, fewer. */
const MISSED = 0.01;
/** More bands take more memory, longer ones more time. */
const MOST_BANDS = 20;
const MOST_ROWS = 8;

/** The longest bands with which few enough pairs are missed: they bring the fewest pairs together in vain. */
export function bandingFor(threshold: number): Banding {
  for (let rows = MOST_ROWS; rows > 1; rows -= 1) {
    const share = threshold ** rows;
    const bands = share >= 1 ? 1 : Math.ceil(Math.log(MISSED) / Math.log(1 - share));
    if (bands <= MOST_BANDS) return { bands, rows };
  }
  return { bands: MOST_BANDS, rows: 1 };
}

const EMPTY = 0xffffffff;
/** Fixed, so that equal logs give equal rows. */
const [PLACE_SEED, FILL_SEED] = [0x5bd1e995, 0x27d4eb2f];

/** Hashes of bands, one for each; never two of the same band number for differing bands but by chance. `shingles`: at least one. */
export function bandsOf(shingles: Uint32Array, { bands, rows }: Banding, into: Uint32Array, at: number): void {
  const size = bands * rows;
  const least = new Uint32Array(size).fill(EMPTY);
  for (let i = 0; i < shingles.length; i += 1) {
    const hash = Math.min(mixed((shingles[i] as number) ^ PLACE_SEED), EMPTY - 1);
    const place = Math.floor((hash / 2 ** 32) * size);
    if (hash < (least[place] as number)) least[place] = hash;
  }
  for (let band = 0; band < bands; band += 1) {
    let hash = band;
    for (let row = 0; row < rows; row += 1) hash = Math.imul(hash ^ filled(least, band * rows + row), 0x9e3779b1) + row;
    into[at + band] = mixed(hash);
  }
}

/** The hash at a place, or at the first place that has one of those that stand in for it. */
function filled(least: Uint32Array, place: number): number {
  for (let look = 0, at = place; ; look += 1) {
    const hash = least[at] as number;
    if (hash !== EMPTY) return look === 0 ? hash : mixed(hash ^ Math.imul(place + 1, FILL_SEED));
    at = mixed(Math.imul(place + 1, PLACE_SEED) ^ Math.imul(look + 1, FILL_SEED)) % least.length;
  }
}
