/** How long a backtracking search for a regular expression can take at worst, told from the pattern alone. */

/** Characters that are not what they stand for elsewhere: escapes, and classes as a whole. */
const OPAQUE = /\\[pPxu]\{[^}]*\}|\\k<|\\.|\[(?:\\.|[^\]\\])*\]/gsu;

/**
 * An upper bound for the steps of finding all matches in a text of `length` characters; infinite where it may be exponential or cannot
 * be told. Each start tries each repetition at each length, so k repetitions cost length^(k+1); each alternative and each `?` doubles it.
 * Repeated groups and references back are not told apart from harmful ones.
 */
export function worstSteps(pattern: string): (length: number) => number {
  const unknown = () => Number.POSITIVE_INFINITY;
  if (/\\(?:[1-9]|k<)/.test(pattern)) return unknown;
  const bare = pattern.replace(OPAQUE, "x").replace(/\(\?(?:[:=!]|<[=!]|<[^>]*>)/g, "(");
  if (/\)[*+{]/.test(bare)) return unknown;
  const repetitions = bare.match(/(?:[*+]|\{\d+(?:,\d*)?\})\??/g)?.length ?? 0;
  const choices = bare.replace(/(?:[*+]|\{\d+(?:,\d*)?\})\??/g, "").match(/[|?]/g)?.length ?? 0;
  return (length) => (length + 1) ** (repetitions + 1) * 2 ** choices;
}
