/**
 * Where a text stops being JSON: the parser's own message has no stable form and no place on every Node. Runs only on
 * text that did not parse, without recursion, so that no nesting can end it.
 */
export interface JsonFault {
  /** UTF-16 units from the start. */
  readonly at: number;
  readonly reason: string;
}

const SPACE = /[ \t\r\n]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORD = /true|false|null/y;
/** A string up to its quote, or to where it goes wrong. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: JSON forbids exactly these in strings.
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*/y;

function match(pattern: RegExp, text: string, at: number): number {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : at;
}

type Expect = "value" | "first" | "key" | "firstKey" | "colon" | "more";

/** The first fault of a text that is not JSON. */
export function jsonFault(text: string): JsonFault {
  const open: ("{" | "[")[] = [];
  let expect: Expect = "value";
  let at = match(SPACE, text, 0);
  if (!/[[{]/.test(text.charAt(at))) return { at, reason: "not a JSON object" };
  for (;;) {
    at = match(SPACE, text, at);
    if (at >= text.length) return { at, reason: "JSON breaks off" };
    const c = text.charAt(at);
    if (expect === "more" && open.length === 0) return { at, reason: "text after the JSON value" };
    if (expect === "colon") {
      if (c !== ":") return invalid(at);
      expect = "value";
      at += 1;
    } else if (expect === "more") {
      const closes = c === (open.at(-1) === "{" ? "}" : "]");
      if (closes) open.pop();
      else if (c !== ",") return invalid(at);
      else expect = open.at(-1) === "{" ? "key" : "value";
      at += 1;
    } else if ((c === "}" && expect === "firstKey") || (c === "]" && expect === "first")) {
      open.pop();
      expect = "more";
      at += 1;
    } else if (expect === "key" || expect === "firstKey") {
      const end = c === '"' ? stringEnd(text, at) : at;
      if (end.valueOf() <= at) return end < 0 ? badString(text, -end - 1) : invalid(at);
      at = end;
      expect = "colon";
    } else if (c === "{" || c === "[") {
      open.push(c);
      expect = c === "{" ? "firstKey" : "first";
      at += 1;
    } else {
      const end = c === '"' ? stringEnd(text, at) : scalarEnd(text, at);
      if (end <= at) return end < 0 ? badString(text, -end - 1) : invalid(at);
      at = end;
      expect = "more";
    }
  }
}

const invalid = (at: number): JsonFault => ({ at, reason: "not valid JSON" });

const badString = (text: string, at: number): JsonFault =>
  at >= text.length ? { at, reason: "JSON breaks off" } : invalid(at);

/** After the closing quote; where there is none, minus the place of the fault, minus one. */
function stringEnd(text: string, at: number): number {
  const end = longStringEnd(text, at);
  return text.charAt(end) === '"' ? end + 1 : -end - 1;
}

/** The pattern backtracks by a stack that very long strings exhaust, so they are taken in pieces. */
function longStringEnd(text: string, at: number): number {
  let end = at + 1;
  const limit = 10_000;
  for (;;) {
    const piece = `"${text.slice(end, end + limit)}`;
    const length = match(STRING, piece, 0) - 1;
    end += length;
    if (length < Math.min(limit, text.length - end + length) - 6 || end >= text.length || length === 0) return end;
  }
}

function scalarEnd(text: string, at: number): number {
  const number = match(NUMBER, text, at);
  return number > at ? number : match(WORD, text, at);
}
