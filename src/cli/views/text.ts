/** Text on a terminal grid: display width, wrapping, cutting a line around a mark. */

/** Code points that take two columns (East Asian Wide and Fullwidth, emoji), as inclusive ranges, coarse but close. */
const WIDE: readonly (readonly [number, number])[] = [
  [0x1100, 0x115f],
  [0x2e80, 0x303e],
  [0x3041, 0x33ff],
  [0x3400, 0x4dbf],
  [0x4e00, 0x9fff],
  [0xa000, 0xa4cf],
  [0xac00, 0xd7a3],
  [0xf900, 0xfaff],
  [0xfe30, 0xfe6f],
  [0xff00, 0xff60],
  [0xffe0, 0xffe6],
  [0x1f300, 0x1f64f],
  [0x1f680, 0x1f6ff],
  [0x1f900, 0x1f9ff],
  [0x20000, 0x3fffd],
];

/** Columns that a code point takes: 0 for combining marks and joiners, 2 for wide ones. */
export function columnsOf(codePoint: string): number {
  const code = codePoint.codePointAt(0) ?? 0;
  if (code < 0x300) return 1;
  if (/^[\p{Mn}\p{Me}\p{Cf}]$/u.test(codePoint)) return 0;
  return WIDE.some(([low, high]) => code >= low && code <= high) ? 2 : 1;
}

export function widthOf(text: string): number {
  let width = 0;
  for (const codePoint of text) width += columnsOf(codePoint);
  return width;
}

const TAB = "    ";

/** Makes a piece of a user's text safe to print: tabs widened, other control characters shown as a placeholder. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced.
  return text.replaceAll("\t", TAB).replace(/[\0-\x1f\x7f-\x9f]/g, "\uFFFD");
}

/** Text of several lines that somebody else wrote, safe for a terminal: line breaks and tabs stay, other control characters do not act. */
export function safeText(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is replaced.
  return text.replace(/[\0-\x08\x0b-\x1f\x7f-\x9f]/g, "\uFFFD");
}

/** Spaces outside of `code`: an even number of backticks follows. */
const BREAKS = / (?=(?:[^`]*`[^`]*`)*[^`]*$)/;

/** Code longer than this is broken like prose. */
const LONGEST_CODE = 50;

function wordsOf(paragraph: string): string[] {
  return paragraph.split(BREAKS).flatMap((word) => (word.length > LONGEST_CODE ? word.split(" ") : [word]));
}

/** Breaks text into lines of at most `width` columns at spaces; a longer word stands alone. Line breaks in it are kept. */
export function wrap(text: string, width: number): string[] {
  return text.split("\n").flatMap((paragraph) => {
    const lines: string[] = [];
    let line = "";
    for (const word of wordsOf(paragraph)) {
      if (line !== "" && widthOf(line) + 1 + widthOf(word) > width) {
        lines.push(line);
        line = word;
      } else line = line === "" ? word : `${line} ${word}`;
    }
    return [...lines, line];
  });
}

/** A line cut to fit, with the columns at which its mark begins and ends in it. */
export interface MarkedLine {
  readonly text: string;
  readonly start: number;
  /** Exclusive, at least `start + 1`. */
  readonly end: number;
}

/**
 * Cuts a source line to `width` columns so that the marked part is seen with what is around it. `from` and `to` are
 * UTF-16 offsets into the line.
 */
export function cutAround(line: string, from: number, to: number, width: number): MarkedLine {
  const before = printable(line.slice(0, from));
  const marked = printable(line.slice(from, Math.max(to, from)));
  const after = printable(line.slice(Math.max(to, from)));
  const lead = widthOf(before) + Math.min(widthOf(marked), width >> 1) > width - 2 ? tail(before, width >> 1) : before;
  const prefix = lead === before ? "" : "…";
  const whole = prefix + lead + marked + after;
  const text = widthOf(whole) > width ? `${head(whole, width - 1)}…` : whole;
  const start = widthOf(prefix + lead);
  return { text, start, end: Math.max(start + 1, Math.min(start + widthOf(marked), widthOf(text))) };
}

function head(text: string, width: number): string {
  let out = "";
  let used = 0;
  for (const codePoint of text) {
    used += columnsOf(codePoint);
    if (used > width) break;
    out += codePoint;
  }
  return out;
}

function tail(text: string, width: number): string {
  const points = [...text];
  let used = 0;
  let at = points.length;
  while (at > 0 && used + columnsOf(points[at - 1] ?? "") <= width) used += columnsOf(points[--at] ?? "");
  return points.slice(at).join("");
}
