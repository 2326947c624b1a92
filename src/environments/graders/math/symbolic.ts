/**
 * Equality of expressions by an algebra system (@cortex-js/compute-engine), loaded when the first expression is met. Where it
 * cannot tell, both are evaluated at a few points: equal everywhere counts as equal.
 */
import type { ComputeEngine, Expression } from "@cortex-js/compute-engine";

let engine: Promise<ComputeEngine> | undefined;

function load(): Promise<ComputeEngine> {
  engine ??= import("@cortex-js/compute-engine").then((module) => new module.ComputeEngine());
  return engine;
}

/** Longer texts are no answers, and algebra on them may take minutes. */
const LONGEST = 300;
/** Irrational and unrelated, so that an accidental root is unlikely. */
const POINTS = [0.7390851, 1.9021605, 3.3166247, -1.259921] as const;
const CLOSE = 1e-9;

export async function sameExpression(a: string, b: string): Promise<boolean> {
  if (a === b) return true;
  if (a.length > LONGEST || b.length > LONGEST) return false;
  const ce = await load();
  try {
    const [left, right] = [ce.parse(a), ce.parse(b)];
    if (!left.isValid || !right.isValid) return withoutSpace(a) === withoutSpace(b);
    if (left.isEqual(right) === true) return true;
    return sameEquation(ce, left, right) || sameAtPoints(left, right);
  } catch {
    // What the parser chokes on is compared as text.
    return withoutSpace(a) === withoutSpace(b);
  }
}

const withoutSpace = (text: string): string => text.replace(/\s+/g, "");

/** Equations are the same if the differences of their sides are, up to sign. */
function sameEquation(ce: ComputeEngine, a: Expression, b: Expression): boolean {
  const [left, right] = [sides(a), sides(b)];
  if (!left || !right) return false;
  const difference = ce.function("Subtract", [left[0], left[1]]);
  const other = ce.function("Subtract", [right[0], right[1]]);
  return sameAtPoints(difference, other) || sameAtPoints(difference, ce.function("Negate", [other]));
}

function sides(expression: Expression): readonly [Expression, Expression] | undefined {
  const operands =
    expression.operator === "Equal" && "ops" in expression ? (expression.ops as readonly Expression[]) : undefined;
  return operands?.length === 2 ? [operands[0] as Expression, operands[1] as Expression] : undefined;
}

function sameAtPoints(a: Expression, b: Expression): boolean {
  const names = [...new Set([...a.unknowns, ...b.unknowns])].sort();
  if (names.length > POINTS.length) return false;
  let compared = 0;
  for (let round = 0; round < POINTS.length; round++) {
    const values: Record<string, number> = {};
    for (const [at, name] of names.entries()) values[name] = POINTS[(at + round) % POINTS.length] as number;
    const [x, y] = [numberAt(a, values), numberAt(b, values)];
    if (x === undefined || y === undefined) continue;
    if (Math.abs(x - y) > CLOSE * Math.max(1, Math.abs(x), Math.abs(y))) return false;
    compared += 1;
    if (names.length === 0) break;
  }
  return compared >= Math.min(2, Math.max(1, names.length === 0 ? 1 : 2));
}

function numberAt(expression: Expression, values: Readonly<Record<string, number>>): number | undefined {
  const value = expression.subs(values).N();
  const number = typeof value.re === "number" && (value.im ?? 0) === 0 ? value.re : Number.NaN;
  return Number.isFinite(number) ? number : undefined;
}
