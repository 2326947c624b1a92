/** Diagnostics for people (as compilers print them) and for programs. */
import type { Diagnostic, SourceRange } from "../../diagnostic.ts";
import type { Style } from "./style.ts";
import { cutAround, printable, wrap } from "./text.ts";

export interface ViewOptions {
  readonly style: Style;
  /** Columns of the terminal. */
  readonly width: number;
}

/** More than this many say no more; the rest is counted. `--json` has all. */
const MOST_SHOWN = 50;

export function renderDiagnostic(d: Diagnostic, { style, width }: ViewOptions): string {
  const paint = d.severity === "error" ? style.red : style.yellow;
  const heading = `${style.bold(paint(`${d.severity}[${d.code}]`))}${style.bold(`: ${d.summary}`)}`;
  const detail = wrap(printableLines(d.detail), Math.max(width - 2, 20)).map((line) => `  ${line}`.trimEnd());
  return [heading, ...sourceLines(d, { style, width }, paint), ...detail].join("\n");
}

function printableLines(text: string): string {
  return text.split("\n").map(printable).join("\n");
}

function sourceLines(d: Diagnostic, { style, width }: ViewOptions, paint: Style["red"]): string[] {
  if (d.range === undefined) return d.address === undefined ? [] : [`${style.blue(" --> ")}${printable(d.address)}`];
  const { start } = d.range;
  const gutter = String(start.line);
  const pad = " ".repeat(gutter.length);
  const where = `${printable(d.range.file)}:${start.line}:${start.column}`;
  const place = `${pad}${style.blue("-->")} ${where}${d.address === undefined ? "" : style.dim(` (${printable(d.address)})`)}`;
  if (d.sourceLine === undefined) return [place];
  const end = markEnd(d.range, d.sourceLine);
  const line = cutAround(d.sourceLine, start.column - 1, end, Math.max(width - gutter.length - 3, 20));
  const bar = style.blue("|");
  return [
    place,
    `${pad} ${bar}`,
    `${style.blue(gutter)} ${bar} ${line.text}`.trimEnd(),
    `${pad} ${bar} ${" ".repeat(line.start)}${paint("^".repeat(line.end - line.start))}`,
    `${pad} ${bar}`,
  ];
}

/** Where the mark ends on the first line of a range, as an offset into that line. */
function markEnd(range: SourceRange, line: string): number {
  return range.end.line === range.start.line ? range.end.column - 1 : line.length;
}

export function renderDiagnostics(diagnostics: readonly Diagnostic[], options: ViewOptions): string {
  // Errors are what stands in the way: they are shown first where not all are.
  const shown =
    diagnostics.length > MOST_SHOWN
      ? [...diagnostics].sort((a, b) => rank(a) - rank(b)).slice(0, MOST_SHOWN)
      : diagnostics;
  const rest = diagnostics.length - shown.length;
  const more = rest > 0 ? [`… and ${rest} more; \`--json\` lists all.`] : [];
  return `${[...shown.map((d) => renderDiagnostic(d, options)), ...more].join("\n\n")}\n`;
}

function rank(d: Diagnostic): number {
  return d.severity === "error" ? 0 : 1;
}

/** `2 errors and 1 warning`. */
export function countDiagnostics(diagnostics: readonly Diagnostic[]): string {
  const errors = diagnostics.filter((d) => d.severity === "error").length;
  const warnings = diagnostics.length - errors;
  const count = (n: number, word: string): string[] => (n === 0 ? [] : [`${n} ${word}${n === 1 ? "" : "s"}`]);
  return [...count(errors, "error"), ...count(warnings, "warning")].join(" and ") || "no faults";
}

/** What to type after diagnostics that name no command themselves; undefined where they do. `help` is for those about the command line. */
export function nextCommand(diagnostics: readonly Diagnostic[], help = "rlcli --help"): string | undefined {
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  const [first] = errors;
  if (first === undefined || errors.some(({ detail }) => detail.includes("`rlcli "))) return undefined;
  return first.code.startsWith("RL900") ? help : `rlcli explain ${first.code}`;
}

/** Version of the JSON form of diagnostics. */
export const DIAGNOSTICS_FORMAT_VERSION = 1;

/** The JSON form; extra members describe what was judged. */
export function diagnosticsJson(
  diagnostics: readonly Diagnostic[],
  extra: Readonly<Record<string, unknown>> = {},
): string {
  return `${JSON.stringify({ formatVersion: DIAGNOSTICS_FORMAT_VERSION, ...extra, diagnostics }, null, 2)}\n`;
}
