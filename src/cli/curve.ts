/** What a run came to, from its record: the curve of its reward and its evals, or of its loss. */
import { join } from "node:path";
import { type Address, nameOf } from "../address.ts";
import { readJsonLines } from "../files.ts";
import { runFolder } from "../kinds/run/observe.ts";
import type { MetricsLine } from "../run-record.ts";
import { RECORD_FILES } from "../training/record.ts";
import { readEvals } from "../training/rl/evals.ts";
import type { CommandContext } from "./context.ts";
import type { OpenProject } from "./project.ts";
import { renderPlot, wantsAscii } from "./views/plot.ts";

const HEIGHT = 6;
/** Of a loss, which mostly falls and says less. */
const LOSS_HEIGHT = 3;
/** Fewer points are no curve. */
const LEAST_POINTS = 4;

/** The curve of a run's reward, or of its loss where it has no rewards, as lines; none for runs of few steps. */
export async function runCurve(
  context: CommandContext,
  open: Pick<OpenProject, "store" | "context">,
  address: Address,
): Promise<readonly string[]> {
  const record = await open.store.read(address);
  if (!record) return [];
  const folder = runFolder(open.context.dataFolder, nameOf(address), record.hash, record.incarnation);
  const lines = readJsonLines<MetricsLine>(join(folder, RECORD_FILES.metrics)).values;
  const rewards = pointsOf(lines, ({ values }) => values?.["reward/mean"]);
  const what = rewards.length > 0 ? "reward" : "loss";
  const points = rewards.length > 0 ? rewards : pointsOf(lines, ({ loss }) => loss);
  if (points.length < LEAST_POINTS) return [];
  const steps = [points[0]?.step ?? 0, points.at(-1)?.step ?? 0] as const;
  const values = points.map(({ value }) => value);
  const height = what === "reward" ? HEIGHT : LOSS_HEIGHT;
  const plot = renderPlot(values, steps, { width: context.width, height, isAscii: wantsAscii(context.env) });
  return [`${what} of ${address}`, ...plot, ...evalLines(folder)];
}

const pointsOf = (lines: readonly MetricsLine[], of: (line: MetricsLine) => number | undefined) =>
  lines.flatMap((line) => {
    const value = of(line);
    return value === undefined ? [] : [{ step: line.step, value }];
  });

/** First, best and last reward of each eval that looked on. */
function evalLines(folder: string): readonly string[] {
  const byName = new Map<string, { step: number; reward: number }[]>();
  for (const { eval: name, step, metrics } of readEvals(folder)) {
    if (metrics.reward === undefined) continue;
    byName.set(name, [...(byName.get(name) ?? []), { step, reward: metrics.reward }]);
  }
  return [...byName].map(([name, results]) => {
    const best = results.reduce((a, b) => (b.reward > a.reward ? b : a));
    const [first, last] = [results[0] as typeof best, results.at(-1) as typeof best];
    const said = `eval.${name}: ${first.reward.toFixed(3)} at step ${first.step} -> ${last.reward.toFixed(3)} at step ${last.step}`;
    return best === last ? said : `${said}, best ${best.reward.toFixed(3)} at step ${best.step}`;
  });
}
