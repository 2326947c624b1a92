/** What an answer's text means: a number with its unit, a collection, plain words, or an expression for the algebra system. */
import { clean, plainText } from "./clean.ts";
import { parseNumber } from "./number.ts";
import type { Rational } from "./rational.ts";

export type Bracket = "(" | "[" | "{" | "";

export type Answer =
  | { readonly type: "number"; readonly value: Rational; readonly isPercent: boolean; readonly unit: string }
  /** `open` and `close` are empty for values that are only separated by commas. */
  | {
      readonly type: "list";
      readonly open: Bracket;
      readonly close: ")" | "]" | "}" | "";
      readonly items: readonly Answer[];
    }
  | { readonly type: "union"; readonly items: readonly Answer[] }
  | { readonly type: "words"; readonly text: string }
  | { readonly type: "expression"; readonly latex: string };

const MAX_DEPTH = 6;
/** `\text{(B)}`: what is inside is read as if it stood alone. */
const WHOLLY_TEXT = /^\\(?:text|textbf|mathrm|mathbf)\s*\{([^{}]*)\}$/;

export function parseAnswer(text: string, depth = 0): Answer {
  const cleaned = withoutName(clean(text).replace(WHOLLY_TEXT, "$1"));
  return (
    parseNumber(plainText(cleaned)) ??
    (depth < MAX_DEPTH
      ? (parseUnion(cleaned, depth) ?? parseBrackets(cleaned, depth) ?? parseCommas(cleaned, depth))
      : undefined) ??
    parseWords(cleaned) ?? { type: "expression", latex: plainText(cleaned) }
  );
}

/** `x = 5`, `x \in [0, 1]`, `f(x) = …` say which unknown is meant; the value is what is compared. */
function withoutName(text: string): string {
  const match = /^(?:\\?[a-zA-Z](?:_\{?\w+\}?)?(?:\([a-z](?:,\s*[a-z])*\))?)\s*(?:=|\\in\b|:)\s*([^=<>]+)$/.exec(text);
  return match?.[1]?.trim() ?? text;
}

function parseUnion(text: string, depth: number): Answer | undefined {
  const parts = splitTop(text, "\\cup");
  return parts.length > 1 ? { type: "union", items: parts.map((part) => parseAnswer(part, depth + 1)) } : undefined;
}

const PAIRS: Readonly<Record<string, readonly string[]>> = { "(": [")", "]"], "[": [")", "]"], "{": ["}"] };

function parseBrackets(text: string, depth: number): Answer | undefined {
  const inner = text
    .replace(/\\lbrace\b|\\\{/g, "{")
    .replace(/\\rbrace\b|\\\}/g, "}")
    .trim();
  const open = inner[0] as Bracket;
  const close = inner.at(-1) as ")" | "]" | "}";
  if (!PAIRS[open]?.includes(close) || !closesAtEnd(inner)) return undefined;
  const content = inner.slice(1, -1).trim();
  if (content === "") return { type: "list", open, close, items: [] };
  const parts = splitTop(content, ",");
  // (A), [5], ((x)): brackets around one thing are only brackets; a set of one is a set.
  if (parts.length === 1 && open !== "{") return parseAnswer(content, depth + 1);
  return { type: "list", open, close, items: parts.map((part) => parseAnswer(part, depth + 1)) };
}

function parseCommas(text: string, depth: number): Answer | undefined {
  const parts = splitTop(text, ",").flatMap((part) => splitWord(part));
  if (parts.length < 2 || parts.some((part) => part.trim() === "")) return undefined;
  return { type: "list", open: "", close: "", items: parts.map((part) => parseAnswer(part, depth + 1)) };
}

/** `1 and 2`, `1 or 2`. */
function splitWord(text: string): readonly string[] {
  return plainText(text).split(/\s+(?:and|or)\s+/);
}

function parseWords(text: string): Answer | undefined {
  const words = plainText(text).trim();
  if (!/^[\p{L}][\p{L}\p{M}\d\s'’.-]*$/u.test(words) || (/^[a-zA-Z]$/.test(words) === false && /[\\^_]/.test(words)))
    return undefined;
  return {
    type: "words",
    text: words
      .toLowerCase()
      .replace(/[.\s]+/g, " ")
      .trim(),
  };
}

/** Splits at a separator outside all brackets. */
function splitTop(text: string, separator: string): readonly string[] {
  const parts: string[] = [];
  let depth = 0;
  let from = 0;
  for (let at = 0; at < text.length; at++) {
    if (depth === 0 && text.startsWith(separator, at)) {
      parts.push(text.slice(from, at));
      at += separator.length - 1;
      from = at + 1;
    } else if (text[at] === "(" || text[at] === "[" || text[at] === "{") depth += 1;
    else if (text[at] === ")" || text[at] === "]" || text[at] === "}") depth -= 1;
  }
  return [...parts, text.slice(from)];
}

/** Whether the bracket at the beginning is closed by the one at the end. */
function closesAtEnd(text: string): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    if ("([{".includes(text[at] as string)) depth += 1;
    if (")]}".includes(text[at] as string)) depth -= 1;
    if (depth === 0 && at < text.length - 1) return false;
  }
  return depth === 0;
}
