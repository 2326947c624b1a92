/**
 * Counter-based random numbers: the n-th number of a stream is a function of (seed, stream, n) alone, so that any batch
 * of any epoch can be known without drawing what came before it.
 */

/** The finalizer of MurmurHash3 (Appleby, public domain): every input bit changes every output bit with even odds. */
function mix(value: number): number {
  let h = value | 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

const GOLDEN = 0x9e3779b9;

/** 32 random bits. All arguments are integers of up to 53 bits. */
function bits(seed: number, stream: number, counter: number, lane: number): number {
  let h = mix(GOLDEN ^ lane);
  for (const word of [seed, stream, counter]) {
    h = mix(h ^ mix((word % 2 ** 32) + GOLDEN));
    h = mix(h ^ mix(Math.floor(word / 2 ** 32) + GOLDEN * 2));
  }
  return h >>> 0;
}

/** Uniform in [0, 1) with 53 random bits. */
export function uniform(seed: number, stream: number, counter: number): number {
  const high = bits(seed, stream, counter, 0) >>> 5;
  const low = bits(seed, stream, counter, 1) >>> 6;
  return (high * 2 ** 26 + low) / 2 ** 53;
}

/** A permutation of 0 … count − 1 (Fisher–Yates). */
export function permutation(count: number, seed: number, stream: number): Uint32Array {
  const order = Uint32Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i -= 1) {
    const j = Math.floor(uniform(seed, stream, i) * (i + 1));
    const held = order[i] as number;
    order[i] = order[j] as number;
    order[j] = held;
  }
  return order;
}

/** A seed for sampling, from 0 to 2³¹ − 1, which every server takes. */
export function seedOf(seed: number, stream: number, counter: number): number {
  return bits(seed, stream, counter, 2) >>> 1;
}
