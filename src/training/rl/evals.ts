/** Evals: answers to fixed tasks, graded, and what they come to. The same code measures during training and afterwards. */
import { join } from "node:path";
import type { EvalOrder } from "../../environment-order.ts";
import type { Environment } from "../../environments/environment.ts";
import { JsonLinesFile, readJsonLines } from "../../files.ts";
import { RUN_RECORD_VERSION } from "../../run-record.ts";
import { mean } from "./measure.ts";
import { type GroupOrder, type Player, playGroup } from "./play.ts";
import { type Attempt, isLost, type LostRollout, type Rollout } from "./rollout.ts";
import { mostFrequent } from "./sampling.ts";

export interface EvalResult {
  readonly tasks: number;
  readonly samples: number;
  /** Attempts that were lost to faults; they count for nothing. */
  readonly lost: number;
  /** `reward`, `pass@1`, `pass@2`, …, and the graders' own metrics under `env/`. */
  readonly metrics: Readonly<Record<string, number>>;
  /** Half the width of the 95 % confidence interval of `reward`, over tasks. */
  readonly error: number;
  /** By value of the tag field. */
  readonly tags?: Readonly<Record<string, { readonly tasks: number; readonly reward: number }>>;
  /** The fault that most attempts were lost to. */
  readonly fault?: string;
}

/** How many tasks an eval takes. */
export function evalTasks({ tasks }: EvalOrder, environment: Environment): number {
  return Math.min(tasks ?? environment.count, environment.count);
}

/** Plays all tasks. The attempts are by task; seeds depend on the eval's own seed alone, so that all weights get the same. */
export async function playEval(player: Player, order: EvalOrder): Promise<readonly (readonly Attempt[])[]> {
  const count = evalTasks(order, player.environment);
  const groups = Array.from({ length: count }, (_, task): GroupOrder => {
    return { step: 0, group: task, task, count: order.samples };
  });
  return Promise.all(
    groups.map(async (group) => {
      const taskName = player.environment.nameOf?.(group.task);
      const attempts = await playGroup(player, group);
      return taskName === undefined ? attempts : attempts.map((attempt) => ({ ...attempt, taskName }));
    }),
  );
}

export function judgeEval(
  groups: readonly (readonly Attempt[])[],
  order: EvalOrder,
  tagOf: (task: number) => string | undefined,
): EvalResult {
  const graded = groups.map((group) => group.filter((attempt): attempt is Rollout => !isLost(attempt)));
  const known = graded.filter((group) => group.length > 0);
  const lost = groups.flat().filter((attempt): attempt is LostRollout => isLost(attempt));
  const rewards = known.map((group) => mean(group.map(({ reward }) => reward)));
  const whole = known.length === 0 ? {} : { reward: mean(rewards), ...passRates(known, order), ...others(known) };
  const tags = byTag(known, tagOf);
  return {
    tasks: groups.length,
    samples: order.samples,
    lost: lost.length,
    metrics: whole,
    error: confidence(rewards),
    ...(tags ? { tags } : {}),
    ...(lost.length > 0 ? { fault: mostFrequent(lost) } : {}),
  };
}

/**
 * pass@k for k = 1, 2, 4, … up to the samples of a task: the chance that one of k answers passes, 1 − C(n−c, k)/C(n, k) for c of
 * n that do (Chen et al. 2021, arXiv 2107.03374). Tasks that lost answers count for the k that they have.
 */
function passRates(
  groups: readonly (readonly Rollout[])[],
  { samples, pass_reward }: EvalOrder,
): Record<string, number> {
  const rates: Record<string, number> = {};
  for (let k = 1; k <= samples; k *= 2) {
    const values = groups
      .filter((group) => group.length >= k)
      .map((group) => passAtK(group.length, group.filter(({ reward }) => reward >= pass_reward).length, k));
    if (values.length > 0) rates[`pass@${k}`] = mean(values);
  }
  return rates;
}

export function passAtK(count: number, passed: number, k: number): number {
  if (count - passed < k) return 1;
  let fails = 1;
  for (let i = count - passed + 1; i <= count; i++) fails *= 1 - k / i;
  return 1 - fails;
}

function others(groups: readonly (readonly Rollout[])[]): Record<string, number> {
  const sums = new Map<string, { sum: number; count: number }>();
  for (const { metrics } of groups.flat()) {
    for (const [name, value] of Object.entries(metrics)) {
      const { sum, count } = sums.get(name) ?? { sum: 0, count: 0 };
      sums.set(name, { sum: sum + value, count: count + 1 });
    }
  }
  return Object.fromEntries([...sums].map(([name, { sum, count }]) => [`env/${name}`, sum / count]));
}

/** 1.96 standard errors of the mean over tasks: answers to one task are not independent, tasks are. */
function confidence(rewards: readonly number[]): number {
  if (rewards.length < 2) return 0;
  const centre = mean(rewards);
  const variance = rewards.reduce((sum, reward) => sum + (reward - centre) ** 2, 0) / (rewards.length - 1);
  return 1.96 * Math.sqrt(variance / rewards.length);
}

function byTag(groups: readonly (readonly Rollout[])[], tagOf: (task: number) => string | undefined) {
  const tags = new Map<string, number[]>();
  for (const group of groups) {
    const tag = tagOf((group[0] as Rollout).task);
    if (tag === undefined) continue;
    const list = tags.get(tag) ?? [];
    list.push(mean(group.map(({ reward }) => reward)));
    tags.set(tag, list);
  }
  if (tags.size === 0) return undefined;
  return Object.fromEntries([...tags].map(([tag, list]) => [tag, { tasks: list.length, reward: mean(list) }]));
}

/** One line of a run's evals.jsonl. */
export interface EvalLine extends EvalResult {
  readonly step: number;
  readonly eval: string;
  readonly at: string;
}

const resultsPath = (folder: string): string => join(folder, "evals.jsonl");

/** Results of a run's evals; of a step that was measured twice the later one. */
export function readEvals(folder: string): readonly EvalLine[] {
  const lines = new Map<string, EvalLine>();
  for (const line of readJsonLines<EvalLine>(resultsPath(folder)).values) lines.set(`${line.eval} ${line.step}`, line);
  return [...lines.values()].sort((a, b) => a.step - b.step);
}

export function addEval(folder: string, line: EvalLine): void {
  const file = new JsonLinesFile(resultsPath(folder), RUN_RECORD_VERSION);
  file.append(line);
  file.sync();
  file.close();
}
