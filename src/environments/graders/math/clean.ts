/** Writes an answer's text in one form: without what TeX adds for the eye, with one spelling for what has several. */

/** Commands that only set space, size or style; their argument, if any, stays. */
const SPACING =
  /\\(?:,|!|;|:|>|\s|quad\b|qquad\b|displaystyle\b|textstyle\b|left\b|right\b|big[lr]?\b|Big[lr]?\b|bigg[lr]?\b|limits\b)/g;

/** Spellings of one thing. */
const SPELLINGS: readonly (readonly [RegExp, string])[] = [
  [/[−–—]/g, "-"],
  [/\u00a0|\u2009|\u202f|~/g, " "],
  [/\\[dtc]frac/g, "\\frac"],
  [/×|\\times\b|⋅|·/g, "\\cdot "],
  [/÷/g, "/"],
  [/\\(?:le|leqslant)\b|≤/g, "\\leq "],
  [/\\(?:ge|geqslant)\b|≥/g, "\\geq "],
  [/\\(?:ne|neq)\b|≠/g, "\\ne "],
  [/π/g, "\\pi "],
  [/∞/g, "\\infty "],
  [/√\s*(\d+)/g, "\\sqrt{$1}"],
  [/∪/g, "\\cup "],
  [/°|\^\s*\{?\s*\\circ\s*\}?/g, ""],
  [/\\degree\b/g, ""],
  // Thousands: 1{,}234 and 1\,234 as TeX writes them, 1 234 and 1_234 as people do.
  [/(\d)\{,\}(?=\d{3}(?!\d))/g, "$1"],
  [/(\d)_(?=\d{3}(?!\d))/g, "$1"],
];

/** Removes `$…$`, `\(…\)`, `\[…\]` around the whole, and the full stop or comma that ends a sentence. */
function unwrap(text: string): string {
  let inner = text.trim();
  for (;;) {
    const before = inner;
    inner = inner
      .replace(/^\$\$?([\s\S]*?)\$\$?$/, "$1")
      .replace(/^\\\(([\s\S]*)\\\)$/, "$1")
      .replace(/^\\\[([\s\S]*)\\\]$/, "$1");
    inner = inner
      .replace(/^\*\*([\s\S]*)\*\*$/, "$1")
      .replace(/^`([\s\S]*)`$/, "$1")
      .replace(/[.,;:]\s*$/, "")
      .trim();
    if (inner === before) return inner;
  }
}

export function clean(text: string): string {
  let result = unwrap(text)
    .replace(/(\d)\\[,!;:\s](?=\d{3}(?!\d))/g, "$1")
    .replace(SPACING, " ");
  for (const [pattern, replacement] of SPELLINGS) result = result.replace(pattern, replacement);
  // \frac12 and \frac1{2} take single characters; \sqrt3 too.
  result = result.replace(/\\frac\s*(\d)\s*(\d)/g, "\\frac{$1}{$2}").replace(/\\frac\s*(\d)\s*\{/g, "\\frac{$1}{");
  result = result.replace(/\\frac\s*(\{[^{}]*\})\s*(\d)/g, "\\frac$1{$2}").replace(/\\sqrt\s*(\d)/g, "\\sqrt{$1}");
  return result.replace(/\s+/g, " ").trim();
}

/** The text inside `\text{…}` and its like, as plain text; everything else as it was. */
export function plainText(text: string): string {
  return text.replace(/\\(?:text|textbf|textit|mathrm|mathbf|mathit|operatorname|mbox|textrm)\s*\{([^{}]*)\}/g, "$1");
}
