/** What another grader makes of saved rollouts: a line a step, the largest differences, and the whole. */
import type { Difference, StepSummary } from "../commands/regrade.ts";
import type { Style } from "./style.ts";
import { printable, wrap } from "./text.ts";

export interface RegradeReport {
  readonly address: string;
  readonly steps: readonly StepSummary[];
  /** The largest first. */
  readonly differences: readonly Difference[];
  /** Why most of those were not judged that were before. */
  readonly fault: string | undefined;
}

export function renderRegrade(
  { address, steps, differences, fault }: RegradeReport,
  { style, width }: { readonly style: Style; readonly width: number },
): string {
  const lines = [style.dim("  step  answers  changed  not judged      before → after")];
  for (const one of steps) lines.push(stepLine(one, style));
  const sum = (of: (step: StepSummary) => number) => steps.reduce((total, step) => total + of(step), 0);
  const [changed, judged, failed] = [sum((s) => s.changed), sum((s) => s.judged), sum((s) => s.failed)];
  if (differences.length > 0) lines.push("", style.bold("Largest differences"));
  for (const { step, task, group, index, before, after, note } of differences) {
    lines.push(`  step ${step}, task ${task}, answer ${group}.${index}: ${before} → ${after}`);
    if (note !== undefined) lines.push(...wrap(printable(note), width - 4).map((line) => style.dim(`    ${line}`)));
  }
  const share = judged === 0 ? "" : ` (${Math.round((100 * changed) / judged)} %)`;
  lines.push("", style.bold(`${address}: ${changed} of ${judged} rewards changed${share}.`));
  if (fault !== undefined)
    lines.push(...wrap(style.yellow(`${failed} were judged before and not now. Most often: ${fault}`), width));
  return `${lines.join("\n")}\n`;
}

function stepLine({ step, attempts, changed, failed, lost, before, after }: StepSummary, style: Style): string {
  const means = before === undefined || after === undefined ? "" : `${before.toFixed(4)} → ${after.toFixed(4)}`;
  const cells = [
    String(step).padStart(6),
    String(attempts).padStart(9),
    String(changed).padStart(9),
    String(failed + lost).padStart(12),
    means.padStart(21),
  ].join("");
  return changed > 0 ? cells : style.dim(cells);
}
