/**
 * How a loss is written: once, over an arithmetic that is passed in. With doubles (`doubles.ts`) the formula is the reference
 * and what a client computes; with a compiler's arrays it becomes part of a server's pass, so that the derivatives are
 * known inside of it and the loss costs one forward and one backward.
 *
 * A value is a number for every position of a datum, or one number for all of them; operations broadcast.
 */
export interface Arithmetic<V> {
  add(a: V | number, b: V | number): V;
  sub(a: V | number, b: V | number): V;
  mul(a: V | number, b: V | number): V;
  div(a: V | number, b: V | number): V;
  min(a: V | number, b: V | number): V;
  max(a: V | number, b: V | number): V;
  exp(a: V): V;
  /** A condition, for `select` only. */
  less(a: V | number, b: V | number): V;
  equal(a: V | number, b: V | number): V;
  /** `yes` where the condition holds; what is not chosen does not matter, be it NaN. */
  select(condition: V, yes: V | number, no: V | number): V;
  /** Over the positions of the datum: one number. */
  sum(a: V): V;
}

/** One datum as a formula sees it. Both throw for a name that the loss has not declared. */
export interface FormulaDatum<V> {
  /** log p(target) in nats, or a critic's value. */
  readonly output: V;
  readonly tensor: (name: string) => V;
  readonly option: (name: string) => V;
}

/** The loss at each position and its derivative by the output there, before the position's weight. */
export interface FormulaTerms<V> {
  readonly loss: V;
  readonly derivative: V | number;
}

export type Formula = <V>(m: Arithmetic<V>, datum: FormulaDatum<V>) => FormulaTerms<V>;

/** A term multiplied by the weights. Where a weight is 0 it is exactly 0, whatever else stands there. */
export function weigh<V>(m: Arithmetic<V>, weights: V, term: V | number): V {
  return m.select(m.equal(weights, 0), 0, m.mul(weights, term));
}
