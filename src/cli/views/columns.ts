/** Texts of several authors side by side, or below each other where the terminal is narrow. */
import type { Style } from "./style.ts";
import { widthOf, wrap } from "./text.ts";

export interface Column {
  readonly title: string;
  /** Row by row. */
  readonly texts: readonly string[];
}

const GAP = "  │  ";
/** Columns narrower than this are hard to read. */
const NARROWEST = 30;

/** All columns have equally many texts. */
export function renderColumns(
  columns: readonly Column[],
  { width, style }: { readonly width: number; readonly style: Style },
): string {
  const each = Math.floor((width - GAP.length * (columns.length - 1)) / columns.length);
  if (each < NARROWEST) return below(columns, style);
  const titles = [columns.map(({ title }) => style.bold(padded(cut(title, each), each)))];
  const rows = (columns[0]?.texts ?? []).map((_, i) =>
    sideBySide(
      columns.map(({ texts }) => texts[i] ?? ""),
      each,
    ),
  );
  const blocks = [titles, ...rows].map((lines) =>
    lines.map((cells) => `${cells.join(style.dim(GAP)).trimEnd()}\n`).join(""),
  );
  const [head = "", ...answers] = blocks;
  return head + answers.join("\n");
}

function sideBySide(texts: readonly string[], width: number): readonly (readonly string[])[] {
  const wrapped = texts.map((text) => wrap(text, width).flatMap((line) => broken(line, width)));
  const height = Math.max(...wrapped.map((lines) => lines.length));
  return Array.from({ length: height }, (_, i) => wrapped.map((lines) => padded(lines[i] ?? "", width)));
}

/** A line cut into pieces of at most `width` columns, where a word is longer. */
function broken(line: string, width: number): readonly string[] {
  if (widthOf(line) <= width) return [line];
  const head = cut(line, width);
  return [head, ...broken(line.slice(head.length), width)];
}

function cut(text: string, width: number): string {
  let out = "";
  let used = 0;
  for (const character of text.replaceAll("\t", " ")) {
    used += widthOf(character);
    if (used > width) break;
    out += character;
  }
  return out;
}

const padded = (text: string, width: number): string => text + " ".repeat(Math.max(0, width - widthOf(text)));

function below(columns: readonly Column[], style: Style): string {
  return columns
    .map(({ title, texts }) => `${style.bold(title)}\n${texts.map((text) => `${text}\n`).join("\n")}`)
    .join("\n");
}
