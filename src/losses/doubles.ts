/**
 * The arithmetic of formulas in double precision, over one datum or several side by side. It runs over every token of every step, so
 * each operation has a loop of its own over arrays of doubles: one loop for all of them would call an operation a number. And what an
 * operation gives lies in one buffer that all of a formula shares: a dozen buffers a datum would cost more than the arithmetic.
 */
import type { Arithmetic } from "./formula.ts";

/** One number a position, or one for all. Conditions are 1 and 0. */
export type Doubles = ArrayLike<number> | number;

/** Room for what operations give, taken from the front until it is freed as a whole. */
class Room {
  #buffer = new Float64Array(1 << 16);
  #used = 0;

  take(length: number): Float64Array {
    // What was taken from the old buffer stays as it is.
    if (this.#used + length > this.#buffer.length) {
      this.#buffer = new Float64Array(2 * (this.#buffer.length + length));
      this.#used = 0;
    }
    const values = this.#buffer.subarray(this.#used, this.#used + length);
    this.#used += length;
    return values;
  }

  free(): void {
    this.#used = 0;
  }
}

const room = new Room();

/** Evaluates with `DOUBLES`; what it gives must not refer to their arrays any more, whose room is used again. */
export function withRoom<T>(work: () => T): T {
  try {
    return work();
  } finally {
    room.free();
  }
}

type Loop = (out: Float64Array, x: Float64Array, y: Float64Array) => void;

/** Within `withRoom` only. */
export const DOUBLES: Arithmetic<Doubles> = {
  add: each((out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = (x[i] as number) + (y[i] as number);
  }),
  sub: each((out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = (x[i] as number) - (y[i] as number);
  }),
  mul: each((out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = (x[i] as number) * (y[i] as number);
  }),
  div: each((out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = (x[i] as number) / (y[i] as number);
  }),
  min: each((out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = Math.min(x[i] as number, y[i] as number);
  }),
  max: each((out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = Math.max(x[i] as number, y[i] as number);
  }),
  exp: (a) => {
    if (typeof a === "number") return Math.exp(a);
    const values = room.take(a.length);
    for (let i = 0; i < values.length; i++) values[i] = Math.exp(a[i] as number);
    return values;
  },
  less: each((out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = (x[i] as number) < (y[i] as number) ? 1 : 0;
  }),
  equal: each((out, x, y) => {
    for (let i = 0; i < out.length; i++) out[i] = x[i] === y[i] ? 1 : 0;
  }),
  select: (condition, yes, no) => {
    const length = lengthOf(condition) ?? lengthOf(yes) ?? lengthOf(no);
    if (length === undefined) return condition ? yes : no;
    const [holds, x, y] = [doubles(condition, length), doubles(yes, length), doubles(no, length)];
    const values = room.take(length);
    for (let i = 0; i < length; i++) values[i] = (holds[i] ? x[i] : y[i]) as number;
    return values;
  },
  sum: (a) => {
    if (typeof a === "number") throw new Error("a sum is over positions");
    let total = 0;
    for (let i = 0; i < a.length; i++) total += a[i] as number;
    return total;
  },
};

/** An operation of two operands by its loop. */
function each(loop: Loop): (a: Doubles, b: Doubles) => Doubles {
  return (a, b) => {
    const length = lengthOf(a) ?? lengthOf(b);
    const values = room.take(length ?? 1);
    loop(values, doubles(a, values.length), doubles(b, values.length));
    return length === undefined ? (values[0] as number) : values;
  };
}

function lengthOf(values: Doubles): number | undefined {
  return typeof values === "number" ? undefined : values.length;
}

/** The values as doubles, so that operations on them need not convert them again. What has fewer is not a number at the rest. */
function doubles(values: Doubles, length: number): Float64Array {
  if (values instanceof Float64Array && values.length === length) return values;
  const all = room.take(length);
  copy(all, 0, length, values);
  return all;
}

/** As `doubles`, of the values of several data side by side. */
export function joinedDoubles(parts: readonly Doubles[], lengths: readonly number[]): Float64Array {
  if (parts.length === 1) return doubles(parts[0] as Doubles, lengths[0] as number);
  const all = room.take(lengths.reduce((sum, length) => sum + length, 0));
  let at = 0;
  for (const [i, values] of parts.entries()) at = copy(all, at, at + (lengths[i] as number), values);
  return all;
}

/** Fills the places from `start` to before `end`; the end. */
function copy(all: Float64Array, start: number, end: number, values: Doubles): number {
  if (typeof values === "number") {
    all.fill(values, start, end);
    return end;
  }
  if (values.length < end - start) all.fill(Number.NaN, start, end);
  // As a rule they are all of a typed array, which is converted faster than numbers are.
  if (values.length <= end - start) all.set(values, start);
  else for (let at = start; at < end; at++) all[at] = values[at - start] as number;
  return end;
}
