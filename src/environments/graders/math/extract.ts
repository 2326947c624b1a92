/**
 * Finds the answer in a text. The whole text is searched and the last marker wins: models correct themselves, and what follows
 * an answer must not hide it.
 */

/** Where an answer may stand, in the order in which they are trusted. */
export const ANSWER_FORMATS = ["boxed", "hash", "answer_is", "last_number"] as const;
export type AnswerFormat = (typeof ANSWER_FORMATS)[number];

export interface Extracted {
  readonly format: AnswerFormat;
  readonly text: string;
}

/** The first of `formats` that finds something. */
export function extractAnswer(text: string, formats: readonly AnswerFormat[] = ANSWER_FORMATS): Extracted | undefined {
  for (const format of formats) {
    const found = FINDERS[format](text);
    if (found !== undefined && found.trim() !== "") return { format, text: found.trim() };
  }
  return undefined;
}

const FINDERS: Readonly<Record<AnswerFormat, (text: string) => string | undefined>> = {
  boxed: lastBoxed,
  hash: (text) => last(text.matchAll(/####[ \t]*([^\n]+)/g)),
  answer_is: (text) => {
    const found = last(text.matchAll(/(?:answer|result)(?:\s+is|\s*[:=])\s*\**\s*([^\n]+)/gi));
    // The sentence ends at a full stop that is not part of a number.
    return found?.replace(/\.(?!\d)[\s\S]*$/, "").replace(/\**\s*$/, "");
  },
  last_number: (text) => last(text.matchAll(NUMBER)),
};

/** Signed numbers with thousands separators, decimals, exponents, fractions and percent signs. */
const NUMBER = /(?<![\w.])([-−+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?:\s*\/\s*\d+)?\s*%?)/g;

function last(matches: IterableIterator<RegExpMatchArray>): string | undefined {
  let found: string | undefined;
  for (const match of matches) found = match[1];
  return found;
}

/** The content of the last `\boxed{…}` or `\fbox{…}` whose braces close; braces inside are matched. */
function lastBoxed(text: string): string | undefined {
  let found: string | undefined;
  for (const match of text.matchAll(/\\(?:boxed|fbox)\s*\{/g)) {
    const content = balanced(text, match.index + match[0].length);
    if (content !== undefined) found = content;
  }
  // `\boxed 5`, without braces, is TeX too.
  return found ?? last(text.matchAll(/\\boxed\s+([^\s$\\]+)/g));
}

/** Text from `start` to the brace that closes the one before it; undefined if none does. */
function balanced(text: string, start: number): string | undefined {
  let depth = 1;
  for (let at = start; at < text.length; at++) {
    const char = text[at];
    if (char === "\\") at += 1;
    else if (char === "{") depth += 1;
    else if (char === "}" && --depth === 0) return text.slice(start, at);
  }
  return undefined;
}
