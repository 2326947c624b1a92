/**
 * Counter-based random numbers: a value depends on (seed, stream, counter) alone, so nothing else that runs can disturb
 * a sample, and every machine gets the same bits. Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers:
 * as easy as 1, 2, 3", SC11): additions, rotations and exclusive-ors of 32-bit words.
 */
const ROTATIONS = [13, 15, 26, 6, 17, 29, 16, 24] as const;
const PARITY = 0x1bd11bda;

/** One block of Threefry-2x32-20: two words of key and two of counter give two words. */
export function threefry(key0: number, key1: number, counter0: number, counter1: number): readonly [number, number] {
  const keys = [key0 | 0, key1 | 0, key0 ^ key1 ^ PARITY] as const;
  let a = (counter0 + keys[0]) | 0;
  let b = (counter1 + keys[1]) | 0;
  for (let round = 0; round < 20; round++) {
    const shift = ROTATIONS[round % 8] as number;
    a = (a + b) | 0;
    b = ((b << shift) | (b >>> (32 - shift))) ^ a;
    if (round % 4 === 3) {
      const turn = (round + 1) / 4;
      a = (a + (keys[turn % 3] as number)) | 0;
      b = (b + (keys[(turn + 1) % 3] as number) + turn) | 0;
    }
  }
  return [a >>> 0, b >>> 0];
}

/** Uniform in [0, 1) with 53 bits, for a seed of up to 53 bits, a stream of the seed and a position in it. */
export function uniform(seed: number, stream: number, counter: number): number {
  const [a, b] = threefry(seed >>> 0, Math.floor(seed / 2 ** 32) | 0, counter, stream);
  return ((a >>> 5) * 2 ** 26 + (b >>> 6)) / 2 ** 53;
}

/**
 * Approximately normal numbers of mean 0 and variance 1: the sum of twelve uniforms less six (Irwin-Hall). Only
 * additions of binary fractions, hence exact: logarithms and cosines may differ between machines in the last bit.
 */
export function normals(seed: number, stream: number, count: number): Float32Array {
  const out = new Float32Array(count);
  for (let i = 0; i < count; i++) {
    let sum = 0;
    for (let j = 0; j < 6; j++) {
      const [a, b] = threefry(seed, 0, i * 6 + j, stream);
      sum += a + b;
    }
    out[i] = sum / 2 ** 32 - 6;
  }
  return out;
}

/** A stream number for a name (FNV-1a), so that each tensor of a model has numbers of its own. */
export function streamOf(name: string): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193);
  return hash >>> 0;
}
