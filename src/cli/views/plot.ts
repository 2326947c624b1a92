/** A curve as text: columns of blocks over a range, for the end of a run. Small on purpose; files hold the numbers. */

/** Eighths of a cell, from the bottom. */
const BLOCKS = " ▁▂▃▄▅▆▇█";
/** The same where only ASCII can be shown: half a cell or a whole one. */
const ASCII = " ....::::";

export interface PlotOptions {
  /** Columns in all. */
  readonly width: number;
  /** Rows of the curve, 1 for a sparkline. */
  readonly height: number;
  readonly isAscii: boolean;
}

/** Mean of each of at most `count` even shares of some values, in order. */
export function binned(values: readonly number[], count: number): readonly number[] {
  const used = Math.min(count, values.length);
  return Array.from({ length: used }, (_, at) => {
    const [from, to] = [Math.floor((at * values.length) / used), Math.floor(((at + 1) * values.length) / used)];
    return values.slice(from, to).reduce((sum, value) => sum + value, 0) / (to - from);
  });
}

const LABEL_WIDTH = 8;
const label = (text: string): string => text.padStart(LABEL_WIDTH);

/**
 * Lines of a plot: the range at the left, the first and the last number of `steps` below. Values that are all equal stand in the
 * lowest row. Empty for no values.
 */
export function renderPlot(
  values: readonly number[],
  steps: readonly [number, number],
  { width, height, isAscii }: PlotOptions,
): readonly string[] {
  if (values.length === 0) return [];
  const columns = binned(values, Math.max(1, width - LABEL_WIDTH - 2));
  const [low, high] = [Math.min(...columns), Math.max(...columns)];
  const eighths = columns.map((value) => 1 + Math.round(((value - low) / (high - low || 1)) * (height * 8 - 1)));
  const rows = Array.from({ length: height }, (_, at) => {
    const floor = (height - 1 - at) * 8;
    const cells = eighths.map((filled) => (isAscii ? ASCII : BLOCKS)[Math.min(8, Math.max(0, filled - floor))]);
    const mark = at === 0 ? number(high) : at === height - 1 ? number(low) : "";
    return `${label(mark)} ${isAscii ? "|" : "│"}${cells.join("")}`.trimEnd();
  });
  const [first, last] = [String(steps[0]), String(steps[1])];
  const gap = Math.max(1, columns.length - first.length - last.length);
  return [...rows, `${label("step")}  ${first}${" ".repeat(gap)}${last}`];
}

const number = (value: number): string => (Math.abs(value) < 1000 ? value.toFixed(3) : value.toExponential(1));

/** Whether blocks can be shown: the locale says UTF-8, and the terminal is none that shows only letters. */
export function wantsAscii({ TERM, LC_ALL, LC_CTYPE, LANG }: Readonly<Record<string, string | undefined>>): boolean {
  const locale = [LC_ALL, LC_CTYPE, LANG].find((value) => value !== undefined && value !== "");
  return TERM === "dumb" || TERM === "linux" || (locale !== undefined && !/utf-?8/i.test(locale));
}
