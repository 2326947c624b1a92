/** What an import did, in a few lines. */
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
  return `${out.join("\n")}\n`;
}
