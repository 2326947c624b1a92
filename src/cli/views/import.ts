/** What an import did, in a few lines. */

import type { RowSummary } from "../../datasets/statistics.ts";
import { describeRejected, type ImportStatistics } from "../../datasets/tally.ts";
import type { Style } from "./style.ts";

const count = (n: number, what: string): string => `${n} ${what}${n === 1 ? "" : "s"}`;

export function renderImport(statistics: ImportStatistics, style: Style): string {
  const { rows, lines, rejected, emptyTurns, toolTurns, formats } = statistics;
  const saw = [...new Set(Object.values(formats))].join(", ");
  const out = [`${style.bold(count(rows, "row"))} from ${count(lines, "line")}${saw ? ` (${saw})` : ""}`];
  for (const reason of rejected) {
    const label = reason.kind === "damaged" ? style.yellow("damaged") : "left out";
    out.push(`  ${label} ${describeRejected(reason)}`);
  }
  const turns = [
    ...(toolTurns > 0 ? [count(toolTurns, "tool turn")] : []),
    ...(emptyTurns > 0 ? [count(emptyTurns, "empty turn")] : []),
  ];
  if (turns.length > 0) out.push(`  dropped ${turns.join(" and ")}`);
  const redacted = Object.entries(statistics.redacted ?? {}).map(([type, n]) => `${n} ${type}`);
  if (redacted.length > 0) out.push(`  redacted ${redacted.sort().join(", ")}`);
  return `${out.join("\n")}\n`;
}

const BAR = 40;

/** Roles, and histograms by powers of two. */
export function renderRowStatistics({ roles, messages, characters }: RowSummary): string {
  const turns = Object.entries(roles).map(([role, n]) => `${n} ${role}`);
  return [
    `turns: ${turns.join(", ")}`,
    ...histogram("messages in a row", messages),
    ...histogram("characters in a row", characters),
    "",
  ].join("\n");
}

function histogram(title: string, counts: readonly number[]): string[] {
  const most = Math.max(...counts);
  const first = counts.findIndex((n) => n > 0);
  const rows = counts.slice(first).map((n, i) => {
    const from = 2 ** (first + i);
    const range = `${from}–${from * 2 - 1}`.padStart(17);
    return `${range} ${String(n).padStart(8)} ${"█".repeat(Math.ceil((n / most) * BAR))}`.trimEnd();
  });
  return [`${title}:`, ...rows];
}
