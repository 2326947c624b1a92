/** Exact numbers: decimals and fractions as a quotient of integers, so that 0.1 + 0.2 is 0.3 and 1/3 is not 0.333. */

export interface Rational {
  readonly numerator: bigint;
  /** Above 0. */
  readonly denominator: bigint;
}

/** Digits beyond which a written number is not turned into an exact one: an answer of a million digits is not an answer. */
const MOST_DIGITS = 400;

/** Reads `-12`, `3.50`, `1e-3`, `.5`; undefined for anything else. */
export function parseDecimal(text: string): Rational | undefined {
  const match = /^([-+]?)(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d{1,3}))?$/.exec(text);
  const [, sign = "", whole = "", part = "", exponent = "0"] = match ?? [];
  if (!match || whole.length + part.length === 0 || whole.length + part.length > MOST_DIGITS) return undefined;
  const digits = BigInt(`${whole}${part}`);
  const scale = Number(exponent) - part.length;
  const value = sign === "-" ? -digits : digits;
  return scale >= 0
    ? { numerator: value * 10n ** BigInt(scale), denominator: 1n }
    : quotient(value, 10n ** BigInt(-scale));
}

/** Undefined for a denominator of zero. */
export function divide(a: Rational, b: Rational): Rational | undefined {
  if (b.numerator === 0n) return undefined;
  return quotient(a.numerator * b.denominator, a.denominator * b.numerator);
}

export function add(a: Rational, b: Rational): Rational {
  return quotient(a.numerator * b.denominator + b.numerator * a.denominator, a.denominator * b.denominator);
}

export function negate({ numerator, denominator }: Rational): Rational {
  return { numerator: -numerator, denominator };
}

export function isEqual(a: Rational, b: Rational): boolean {
  return a.numerator * b.denominator === b.numerator * a.denominator;
}

export function toNumber({ numerator, denominator }: Rational): number {
  const quotientNumber = Number(numerator) / Number(denominator);
  if (Number.isFinite(quotientNumber)) return quotientNumber;
  // Both beyond the range of doubles: divide as integers first.
  return Number((numerator * 10n ** 20n) / denominator) / 1e20;
}

function quotient(numerator: bigint, denominator: bigint): Rational {
  const sign = denominator < 0n ? -1n : 1n;
  const divisor = gcd(numerator < 0n ? -numerator : numerator, denominator * sign);
  return { numerator: (numerator * sign) / divisor, denominator: (denominator * sign) / divisor };
}

function gcd(a: bigint, b: bigint): bigint {
  let [x, y] = [a, b];
  while (y > 0n) [x, y] = [y, x % y];
  return x === 0n ? 1n : x;
}
