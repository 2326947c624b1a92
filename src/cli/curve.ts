/** What a run of reinforcement learning came to, from its record: the curve of its reward and its evals. */
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
/** Fewer points are no curve. */
const LEAST_POINTS = 4;

/** The curve of a run's reward as lines; none for runs without one. */
export async function rewardCurve(
  context: CommandContext,
  open: Pick<OpenProject, "store" | "context">,
  address: Address,
): Promise<readonly string[]> {
  const record = await open.store.read(address);
  if (!record) return [];
  const folder = runFolder(open.context.dataFolder, nameOf(address), record.hash, record.incarnation);
  const lines = readJsonLines<MetricsLine>(join(folder, RECORD_FILES.metrics)).values;
  const points = lines.flatMap(({ step, values }) => {
    const reward = values?.["reward/mean"];
    return reward === undefined ? [] : [{ step, reward }];
  });
  if (points.length < LEAST_POINTS) return [];
  const steps = [points[0]?.step ?? 0, points.at(-1)?.step ?? 0] as const;
  const rewards = points.map(({ reward }) => reward);
  const plot = renderPlot(rewards, steps, { width: context.width, height: HEIGHT, isAscii: wantsAscii(context.env) });
  return [`reward of ${address}`, ...plot, ...evalLines(folder)];
}

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
