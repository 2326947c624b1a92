/** The arithmetic of formulas in double precision, over one datum. */
import type { Arithmetic } from "./formula.ts";

/** One number a position, or one for all. Conditions are 1 and 0. */
export type Doubles = ArrayLike<number> | number;

export const DOUBLES: Arithmetic<Doubles> = {
  add: each((a, b) => a + b),
  sub: each((a, b) => a - b),
  mul: each((a, b) => a * b),
  div: each((a, b) => a / b),
  min: each(Math.min),
  max: each(Math.max),
  exp: (a) => (typeof a === "number" ? Math.exp(a) : Float64Array.from(a, Math.exp)),
  less: each((a, b) => Number(a < b)),
  equal: each((a, b) => Number(a === b)),
  select: (condition, yes, no) => {
    const length = lengthOf(condition) ?? lengthOf(yes) ?? lengthOf(no);
    if (length === undefined) return condition ? yes : no;
    return Float64Array.from({ length }, (_, i) => (at(condition, i) ? at(yes, i) : at(no, i)));
  },
  sum: (a) => {
    if (typeof a === "number") throw new Error("a sum is over positions");
    let total = 0;
    for (let i = 0; i < a.length; i++) total += a[i] as number;
    return total;
  },
};

function each(operation: (a: number, b: number) => number): (a: Doubles, b: Doubles) => Doubles {
  return (a, b) => {
    const length = lengthOf(a) ?? lengthOf(b);
    if (length === undefined) return operation(a as number, b as number);
    const values = new Float64Array(length);
    for (let i = 0; i < length; i++) values[i] = operation(at(a, i), at(b, i));
    return values;
  };
}

function lengthOf(values: Doubles): number | undefined {
  return typeof values === "number" ? undefined : values.length;
}

function at(values: Doubles, position: number): number {
  return typeof values === "number" ? values : (values[position] as number);
}
