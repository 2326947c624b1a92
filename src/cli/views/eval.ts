/** Results of evals as tables: metrics with their interval and threshold, and rewards by tag. */
import type { EvalResult } from "../../training/rl/evals.ts";
import type { Style } from "./style.ts";

export interface ShownEval {
  /** `eval.holdout`. */
  readonly name: string;
  /** What was measured: `run.agent at step 120`. */
  readonly what: string;
  readonly result: EvalResult;
  readonly thresholds: Readonly<Record<string, { readonly min?: number; readonly max?: number }>>;
  readonly passed: boolean;
  readonly faults: readonly string[];
}

export function renderEval({ name, what, result, thresholds, passed, faults }: ShownEval, style: Style): string {
  const isJudged = Object.keys(thresholds).length > 0;
  const verdict = !isJudged ? "" : passed ? style.green("passed") : style.red("not passed");
  const rows = metricRows(result, thresholds);
  const widths = [0, 1, 2].map((column) => Math.max(0, ...rows.map((row) => (row[column] as string).length)));
  const lines = rows.map((row) => `  ${row.map((cell, at) => cell.padEnd(widths[at] as number)).join("  ")}`.trimEnd());
  const { tasks, samples, lost, fault } = result;
  const count = `${tasks} tasks, ${samples} answer${samples === 1 ? "" : "s"} each`;
  const losses = lost === 0 ? [] : [style.yellow(`  ${lost} lost to faults. Most often: ${fault}`)];
  // A threshold of a metric that there is shows in its row.
  const unseen = faults.filter((text) => text.startsWith("it has no metric")).map((text) => `  ${style.red(text)}`);
  return [
    `${style.bold(name)}  ${what}${verdict === "" ? "" : `  ${verdict}`}`,
    ...lines,
    ...unseen,
    ...tagLines(result),
    ...losses,
    style.dim(`  ${count}`),
    "",
  ].join("\n");
}

function metricRows({ metrics, error }: EvalResult, thresholds: ShownEval["thresholds"]): readonly string[][] {
  return Object.entries(metrics).map(([name, value]) => {
    const interval = name === "reward" && error > 0 ? ` ±${error.toFixed(3)}` : "";
    return [name, `${value.toFixed(3)}${interval}`, thresholdWords(value, thresholds[name])];
  });
}

function thresholdWords(value: number, threshold: ShownEval["thresholds"][string] | undefined): string {
  if (!threshold) return "";
  const { min, max } = threshold;
  const words = [
    ...(min === undefined ? [] : [`at least ${min}`]),
    ...(max === undefined ? [] : [`at most ${max}`]),
  ].join(", ");
  const isMet = (min === undefined || value >= min) && (max === undefined || value <= max);
  return `${words}: ${isMet ? "yes" : "NO"}`;
}

function tagLines({ tags = {} }: EvalResult): readonly string[] {
  const entries = Object.entries(tags).sort(([a], [b]) => (a < b ? -1 : 1));
  const width = Math.max(0, ...entries.map(([tag]) => tag.length));
  return entries.map(([tag, { tasks, reward }]) => `  ${tag.padEnd(width)}  ${reward.toFixed(3)}  (${tasks} tasks)`);
}
