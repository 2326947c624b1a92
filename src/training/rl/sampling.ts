/** The groups of a step: those that were sampled before a crash are read, the others are played; each is written down whole. */
import { fail } from "../../diagnostic.ts";
import type { Sampler } from "../../tinker/sampler.ts";
import type { RlContext } from "./context.ts";
import { type GroupRules, type JudgedGroup, judgeGroup } from "./groups.ts";
import { type GroupOrder, type Player, playGroup } from "./play.ts";
import { type Attempt, isLost, type LostRollout, type Rollout } from "./rollout.ts";
import { RolloutFile, readRollouts, rolloutPath, setAside, writeAttempts } from "./rollout-files.ts";
import { segmentsOf } from "./segments.ts";

export interface SampledStep {
  /** By number of the group. They end in any order; the first fault of all rejects each that is not done. */
  readonly groups: readonly Promise<JudgedGroup>[];
  /** Rollouts that were there from before. */
  readonly reused: number;
  /** Rollouts that were dropped because the weights that sampled them were too old. */
  readonly stale: number;
  /** On disk when this returns. */
  sync(): void;
  close(): void;
}

export function rulesOf({ run }: RlContext): GroupRules {
  const { advantage, min_group_size } = run.order.settings;
  return { advantage, min_group_size, keepConstant: run.rl.keep_constant ?? false };
}

/** Samples a step from its own weights. */
export async function sampleStep(context: RlContext, step: number): Promise<SampledStep> {
  const { run } = context;
  const tasks = run.tasksOf(step);
  const known = knownGroups(context, step, tasks.length);
  const file = new RolloutFile(run.deps.folder, step);
  const rules = rulesOf(context);
  const player = known.size === tasks.length ? undefined : runPlayer(context, await context.samplerOf(step), step);
  const groups = tasks.map(async (task, group): Promise<JudgedGroup> => {
    const before = known.get(group);
    if (before || !player) return judgeGroup(before ?? [], rules);
    const attempts = await playTask(context, player, { step, group, task });
    file.add(attempts);
    run.at("rollouts:group");
    return judgeGroup(attempts, rules);
  });
  // Whoever waits for one of them sees its fault; the others' must not count as unhandled.
  for (const group of groups) group.catch(() => {});
  return { groups, reused: countOf(known), stale: 0, sync: () => file.sync(), close: () => file.close() };
}

export function countOf(groups: ReadonlyMap<number, readonly Attempt[]>): number {
  return [...groups.values()].reduce((sum, attempts) => sum + attempts.length, 0);
}

/** A player of the run's own episodes, with the weights before a step. */
export function runPlayer(context: RlContext, sampler: Sampler, step: number): Player {
  const { order, parts } = context.run;
  const { sampling, seed, template_kwargs: templateKwargs } = order.settings;
  return context.player(sampler, step, { environment: parts.environment, sampling, seed, templateKwargs });
}

/** All attempts at one task, with what the reference thinks of them where there is a KL penalty. */
export async function playTask(
  context: RlContext,
  player: Player,
  place: Omit<GroupOrder, "count">,
): Promise<readonly Attempt[]> {
  const { group_size: count, kl_penalty } = context.run.order.settings;
  const attempts = await playGroup(player, { ...place, count });
  return kl_penalty > 0 ? withReference(context, attempts) : attempts;
}

/** Whole groups in a step's file, if the weights that sampled them are the very ones that are there now. */
export function knownGroups({ run, lineage }: RlContext, step: number, count: number): Map<number, readonly Attempt[]> {
  const { folder } = run.deps;
  const { open, samplers } = run.record.journal.state;
  // Of a restored checkpoint the weights are exact; of later steps that are done again they are where the server computes the same
  // every time.
  const isExact = samplers.has(step) || step === (open?.step ?? 0) + 1 || lineage.kind === "embedded";
  if (!isExact) {
    setAside(folder, step);
    return new Map();
  }
  const { group_size } = run.order.settings;
  const groups = new Map<number, Attempt[]>();
  for (const attempt of readRollouts(folder, step)) {
    const group = groups.get(attempt.group) ?? [];
    group[attempt.index] = attempt;
    groups.set(attempt.group, group);
  }
  const isWhole = (group: readonly Attempt[]) => group.length === group_size && !group.includes(undefined as never);
  return new Map([...groups].filter(([at, group]) => at < count && isWhole(group)));
}

/** Adds what the reference thinks of each token. */
async function withReference(context: RlContext, attempts: readonly Attempt[]): Promise<readonly Attempt[]> {
  const sampler = await context.reference();
  return Promise.all(
    attempts.map(async (attempt) => {
      if (isLost(attempt)) return attempt;
      const segments = segmentsOf(attempt.turns);
      const options = context.waiting("the reference");
      const reference = await Promise.all(segments.map(({ tokens }) => sampler.logprobs(tokens, options)));
      // Of the first token nothing is known, and nothing is asked.
      for (const values of reference) values[0] = 0;
      return { ...attempt, reference } satisfies Rollout;
    }),
  );
}

/**
 * Stops the run where more of a step was lost than is tolerated. What was lost is then taken out of the step's file, so that a
 * resumed run tries it again.
 */
export function checkLosses({ run }: RlContext, step: number, groups: readonly JudgedGroup[]): void {
  const { max_failure_rate } = run.rl;
  const lostCount = groups.reduce((sum, group) => sum + group.lost, 0);
  const count = groups.reduce((sum, { rollouts }) => sum + rollouts.length, lostCount);
  if (lostCount <= max_failure_rate * count) return;
  const attempts = readRollouts(run.deps.folder, step);
  const lost = attempts.filter(isLost);
  const faulty = new Set(lost.map(({ group }) => group));
  const kept = attempts.filter(({ group }) => !faulty.has(group));
  // First the end of the lineage: parts of the step may be on their way, and what they were made of is about to change.
  const { record } = run;
  record.journal.begin({ t: "end", at: record.at(), status: "failed", step: record.journal.state.done });
  run.at("losses:ended");
  writeAttempts(rolloutPath(run.deps.folder, step), kept);
  run.at("losses:removed");
  const share = Math.round((100 * lost.length) / attempts.length);
  const detail = `${lost.length} of the ${attempts.length} answers of step ${step} (${share} %) were lost to faults; max_failure_rate of ${run.order.address} tolerates ${Math.round(100 * max_failure_rate)} %. Most often: ${mostFrequent(lost)}`;
  fail("RL8101", detail, { address: run.order.address });
}

/** The fault that most were lost to, in its own words. */
export function mostFrequent(lost: readonly LostRollout[]): string {
  const counts = new Map<string, number>();
  for (const { fault } of lost) {
    const words = `${fault.message.replace(/\.?$/, ".")} (${fault.code})`;
    counts.set(words, (counts.get(words) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? "";
}
