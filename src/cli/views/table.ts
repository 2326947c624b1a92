/** Rows as aligned columns. */
import type { Style } from "./style.ts";
import { widthOf } from "./text.ts";

export interface TableColumn<R> {
  readonly title: string;
  readonly of: (row: R) => string;
  /** Numbers stand at the right. */
  readonly isNumber?: boolean;
}

/** With a line of titles; columns in which no row has anything are left out, and the last is not padded. */
export function renderTable<R>(rows: readonly R[], columns: readonly TableColumn<R>[], style: Style): string {
  const filled = columns
    .map(({ title, of, isNumber = false }) => ({ title, isNumber, cells: rows.map(of) }))
    .filter(({ cells }) => cells.some((cell) => cell !== ""));
  const padded = filled.map(({ title, isNumber, cells }) => {
    const width = Math.max(widthOf(title), ...cells.map(widthOf));
    const pad = (text: string) => {
      const space = " ".repeat(width - widthOf(text));
      return isNumber ? space + text : text + space;
    };
    return { title: pad(title), cells: cells.map(pad) };
  });
  if (padded.length === 0) return "";
  const head = padded.map(({ title }) => title).join("  ");
  const lines = rows.map((_, i) => padded.map(({ cells }) => cells[i]).join("  "));
  return [style.dim(head.trimEnd()), ...lines.map((line) => line.trimEnd()), ""].join("\n");
}
