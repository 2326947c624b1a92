/** Whether two answers mean the same. Symmetric, except that a unit or a percent sign may be missing on either side. */
import type { Answer } from "./answer.ts";
import { divide, isEqual, type Rational, toNumber } from "./rational.ts";

export interface CompareOptions {
  /** Relative difference that rounded decimals may have. */
  readonly tolerance: number;
  /** Decides expressions; false where it cannot. */
  symbolic(a: string, b: string): Promise<boolean>;
}

export async function sameAnswer(a: Answer, b: Answer, options: CompareOptions): Promise<boolean> {
  if (a.type === "number" && b.type === "number") return sameNumber(a, b, options.tolerance);
  if (a.type === "words" && b.type === "words") return a.text === b.text;
  if (a.type === "union" && b.type === "union") return sameItems(a.items, b.items, false, options);
  if (a.type === "list" && b.type === "list") return sameList(a, b, options);
  // A set of one, or a list of one, against its only member.
  if (a.type === "list" && a.items.length === 1) return sameAnswer(a.items[0] as Answer, b, options);
  if (b.type === "list" && b.items.length === 1) return sameAnswer(a, b.items[0] as Answer, options);
  const [left, right] = [latexOf(a), latexOf(b)];
  return left !== undefined && right !== undefined && options.symbolic(left, right);
}

const HUNDRED: Rational = { numerator: 100n, denominator: 1n };

function sameNumber(
  a: Extract<Answer, { type: "number" }>,
  b: Extract<Answer, { type: "number" }>,
  tolerance: number,
): boolean {
  if (a.unit !== "" && b.unit !== "" && a.unit !== b.unit) return false;
  if (close(a.value, b.value, tolerance)) return true;
  if (a.isPercent === b.isPercent) return false;
  // 50 % is 0.5 as well as 50.
  const share = (n: typeof a): Rational => (n.isPercent ? (divide(n.value, HUNDRED) as Rational) : n.value);
  return close(share(a), share(b), tolerance);
}

function close(a: Rational, b: Rational, tolerance: number): boolean {
  if (isEqual(a, b)) return true;
  // Two integers are the same or not, however large.
  if (a.denominator === 1n && b.denominator === 1n) return false;
  const [x, y] = [toNumber(a), toNumber(b)];
  return Math.abs(x - y) <= tolerance * Math.max(Math.abs(x), Math.abs(y));
}

type List = Extract<Answer, { type: "list" }>;

function sameList(a: List, b: List, options: CompareOptions): Promise<boolean> | boolean {
  const isSet = (list: List) => list.open === "{";
  const isLoose = (list: List) => list.open === "";
  if (isSet(a) !== isSet(b) && !isLoose(a) && !isLoose(b)) return false;
  // Intervals and tuples: brackets say whether the ends belong to them.
  const hasEnds = a.open === "[" || b.open === "[" || a.close === "]" || b.close === "]";
  if (hasEnds && !isLoose(a) && !isLoose(b) && (a.open !== b.open || a.close !== b.close)) return false;
  const isOrdered = !(isSet(a) || isSet(b) || (isLoose(a) && isLoose(b)));
  return sameItems(a.items, b.items, isOrdered, options);
}

async function sameItems(
  a: readonly Answer[],
  b: readonly Answer[],
  isOrdered: boolean,
  options: CompareOptions,
): Promise<boolean> {
  if (a.length !== b.length) return false;
  const left = [...b];
  for (const item of a) {
    let found = -1;
    for (let at = 0; at < (isOrdered ? 1 : left.length) && found < 0; at++) {
      if (await sameAnswer(item, left[at] as Answer, options)) found = at;
    }
    if (found < 0) return false;
    left.splice(found, 1);
  }
  return true;
}

function latexOf(answer: Answer): string | undefined {
  switch (answer.type) {
    case "expression":
      return answer.latex;
    case "words":
      return answer.text.length === 1 ? answer.text : undefined;
    case "number": {
      const { numerator, denominator } = answer.value;
      return denominator === 1n ? `${numerator}` : `\\frac{${numerator}}{${denominator}}`;
    }
    case "list":
    case "union":
      return undefined;
  }
}
