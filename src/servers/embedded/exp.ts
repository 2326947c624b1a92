/**
 * e^x from additions and multiplications alone, so that its bits are the same on every machine and version of Node, and
 * several times faster than `Math.exp` in a loop. Relative error below 1e-9, which float32 does not see.
 */
/** ln 2 in two parts: the first has so few digits that multiples of it are exact. */
const LN2_HIGH = 0.6931471803691238;
const LN2_LOW = 1.9082149292705877e-10;
const LEAST_EXPONENT = -1074;
const MOST_EXPONENT = 1023;
/** 2^k, from LEAST_EXPONENT on. */
const POWERS = Float64Array.from({ length: MOST_EXPONENT - LEAST_EXPONENT + 1 }, (_, i) => 2 ** (i + LEAST_EXPONENT));

/** x = k ln 2 + r with |r| ≤ ln 2 / 2, hence e^x = 2^k e^r; e^r by its Taylor polynomial of degree 8. */
export function exp(x: number): number {
  const k = Math.floor(x * Math.LOG2E + 0.5);
  if (k < LEAST_EXPONENT) return 0;
  if (k > MOST_EXPONENT) return Number.POSITIVE_INFINITY;
  const r = x - k * LN2_HIGH - k * LN2_LOW;
  const high = 1 / 24 + r * (1 / 120 + r * (1 / 720 + r * (1 / 5040 + r * (1 / 40320))));
  const low = 1 + r * (1 + r * (1 / 2 + r * (1 / 6 + r * high)));
  return low * (POWERS[k - LEAST_EXPONENT] as number);
}
