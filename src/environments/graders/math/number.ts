/** Numbers as people and TeX write them: signs, separators, fractions, mixed numbers, percent, currency and units. */
import type { Answer } from "./answer.ts";
import { add, divide, negate, parseDecimal, type Rational } from "./rational.ts";

type NumberAnswer = Extract<Answer, { type: "number" }>;

const CURRENCY = /^(?:\\?\$|€|£|¥|USD|EUR|GBP)\s*/;
/** What may follow a number and is no part of it: words, and letters with powers such as `cm^2`. */
const UNIT = /^(?:\\?\$|€|£|¥|[\p{L}µΩ][\p{L}µΩ\s./]*(?:\^\{?-?\d\}?)?)$/u;

/** Undefined for what is not one number. */
export function parseNumber(text: string): NumberAnswer | undefined {
  const sign = /^[-+]\s*/.exec(text)?.[0] ?? "";
  const money = CURRENCY.exec(text.slice(sign.length))?.[0] ?? "";
  const rest = text.slice(sign.length + money.length).replace(/\\%/g, "%");
  const head = HEADS.map((read) => read(rest)).find((found) => found !== undefined);
  if (!head) return undefined;
  const tail = rest.slice(head.length).trim();
  const isPercent = /^%|^percent\b|^per cent\b/i.test(tail);
  const unit = tail.replace(/^%\s*|^per\s?cent\b\s*/i, "").trim();
  if (unit !== "" && (!UNIT.test(unit) || isUnknown(unit))) return undefined;
  const value = sign.startsWith("-") ? negate(head.value) : head.value;
  return { type: "number", value, isPercent, unit: unitName(unit || money.trim()) };
}

/** A single letter that is no unit's sign is a variable: `0.5x` is an expression. */
function isUnknown(unit: string): boolean {
  return /^[a-zA-Z](?:\^.*)?$/.test(unit) && !/^[mgshlLNJWVAKCF]/.test(unit);
}

/** One name for the common spellings of a unit. */
function unitName(text: string): string {
  const unit = text.toLowerCase().replace(/[\\{}\s.]/g, "");
  return UNIT_NAMES[unit] ?? unit.replace(/(?<=[a-z]{3})s$/, "");
}

const UNIT_NAMES: Readonly<Record<string, string>> = {
  $: "dollar",
  usd: "dollar",
  dollars: "dollar",
  "€": "euro",
  eur: "euro",
  "£": "pound",
  gbp: "pound",
  hours: "hour",
  hrs: "hour",
  h: "hour",
  minutes: "minute",
  min: "minute",
  mins: "minute",
  seconds: "second",
  s: "second",
  sec: "second",
  degrees: "",
  degree: "",
  meters: "m",
  metres: "m",
  meter: "m",
  centimeters: "cm",
  kilometers: "km",
  kilograms: "kg",
  grams: "g",
  units: "",
  unit: "",
};

interface Head {
  readonly value: Rational;
  /** Characters of the text that it takes. */
  readonly length: number;
}

const PLAIN = String.raw`(?:\d{1,3}(?:,\d{3})+(?!\d)|\d{1,3}(?: \d{3})+(?![\d/])|\d+)?(?:\.\d+|\.(?!\d))?(?:[eE][-+]?\d{1,3})?`;
const POWER = String.raw`(?:\s*\\cdot\s*10\^(?:\{(-?\d{1,3})\}|(-?\d{1,3})))`;

const read = (text: string): Rational | undefined => parseDecimal(text.replace(/[,\s]/g, ""));

/** Longest forms first, so that `3 1/2` is not 3. */
const HEADS: readonly ((text: string) => Head | undefined)[] = [
  // 3\frac{1}{2}, \frac{1}{2}, -\frac{-1}{2}
  (text) => {
    const match = /^(\d*)\s*\\frac\s*\{\s*([-+]?[\d.,]+)\s*\}\s*\{\s*([-+]?[\d.,]+)\s*\}/.exec(text);
    return match ? fraction(match[1] as string, match[2] as string, match[3] as string, match[0].length) : undefined;
  },
  // 3 1/2, 1/2
  (text) => {
    const match = /^(?:(\d+)\s+)?(\d[\d,]*(?:\.\d+)?)\s*\/\s*(\d[\d,]*(?:\.\d+)?)/.exec(text);
    return match ? fraction(match[1] ?? "", match[2] as string, match[3] as string, match[0].length) : undefined;
  },
  // 1.5 \cdot 10^{3}
  (text) => {
    const match = new RegExp(`^(${PLAIN})${POWER}`).exec(text);
    const value = match?.[1] ? read(`${match[1]}e${match[2] ?? match[3]}`) : undefined;
    return match && value ? { value, length: match[0].length } : undefined;
  },
  (text) => {
    const match = new RegExp(`^${PLAIN}`).exec(text);
    const value = match?.[0] ? read(match[0]) : undefined;
    return match && value ? { value, length: match[0].length } : undefined;
  },
];

function fraction(whole: string, top: string, bottom: string, length: number): Head | undefined {
  const [numerator, denominator] = [read(top), read(bottom)];
  const part = numerator && denominator && divide(numerator, denominator);
  const integer = whole === "" ? undefined : read(whole);
  if (!part) return undefined;
  return { value: integer ? add(integer, part) : part, length };
}
