/** Saved rollouts judged again by another grader: the answers stay, only what they are worth changes. No server is needed. */
import { RlcliError } from "../../diagnostic.ts";
import type { Environment } from "../../environments/environment.ts";
import type { Grade } from "../../environments/grader.ts";
import { FATAL_CODES } from "./play.ts";
import { type Attempt, isLost, type LostRollout, type Rollout } from "./rollout.ts";

export interface Regraded {
  /** As it was. */
  readonly before: Attempt;
  /** With its new reward; lost where it cannot be judged now; as it was where there is no answer to judge. */
  readonly after: Attempt;
}

/** Judges some attempts, of which those that were lost have no answer that could be judged. */
export function regradeAll(
  environment: Environment,
  attempts: readonly Attempt[],
  signal: AbortSignal,
): Promise<readonly Regraded[]> {
  return Promise.all(
    attempts.map(async (before) => {
      return { before, after: isLost(before) ? before : await regradeOne(environment, before, signal) };
    }),
  );
}

async function regradeOne(environment: Environment, before: Rollout, signal: AbortSignal): Promise<Attempt> {
  try {
    const grade = await gradeOf(environment, before, signal);
    if (grade === undefined)
      return lost(before, "RL7104", "The grader of now does not end the conversation as it ended.");
    const { reward, metrics, note } = grade;
    const { note: _, ...rest } = before;
    return { ...rest, reward: reward + 0, metrics, ...(note === undefined ? {} : { note }) };
  } catch (error) {
    if (!(error instanceof RlcliError) || signal.aborted) throw error;
    const [first] = error.diagnostics;
    if (first && FATAL_CODES.has(first.code)) throw error;
    return lost(before, first?.code ?? "RL7103", first?.detail ?? error.message);
  }
}

/** Says the answers again, one after another. Undefined where the grader would have gone on, or ended before the last. */
async function gradeOf(
  environment: Environment,
  { task, turns }: Rollout,
  signal: AbortSignal,
): Promise<Grade | undefined> {
  const episode = await environment.open(task, signal);
  try {
    for (const [at, { text, stop }] of turns.entries()) {
      const isLast = at === turns.length - 1;
      const response = await episode.respond({ text, isWhole: stop === "stop", isLast });
      if (!("messages" in response)) return isLast ? response : undefined;
    }
    return undefined;
  } finally {
    await episode.close();
  }
}

function lost({ group, index, task }: Rollout, code: string, message: string): LostRollout {
  return { group, index, task, fault: { code, message } };
}

export interface RegradeSummary {
  readonly attempts: number;
  /** Judged before and now. */
  readonly judged: number;
  /** Of those, with another reward. */
  readonly changed: number;
  /** Without an answer to judge. */
  readonly lost: number;
  /** Judged before, and not now. */
  readonly failed: number;
  /** Mean rewards of those that were judged both times; undefined for none. */
  readonly before?: number;
  readonly after?: number;
}

/** Rewards nearer than this are equal: they are sums of a few products. */
const REWARD_EPSILON = 1e-9;

export function differenceOf({ before, after }: Regraded): number | undefined {
  return isLost(before) || isLost(after) ? undefined : after.reward - before.reward;
}

export function summarise(regraded: readonly Regraded[]): RegradeSummary {
  const both = regraded.flatMap(({ before, after }) =>
    isLost(before) || isLost(after) ? [] : [{ before: before.reward, after: after.reward }],
  );
  const lostBefore = regraded.filter(({ before }) => isLost(before)).length;
  const meanOf = (which: "before" | "after") => both.reduce((sum, pair) => sum + pair[which], 0) / both.length;
  return {
    attempts: regraded.length,
    judged: both.length,
    changed: both.filter(({ before, after }) => Math.abs(after - before) > REWARD_EPSILON).length,
    lost: lostBefore,
    failed: regraded.length - lostBefore - both.length,
    ...(both.length > 0 ? { before: meanOf("before"), after: meanOf("after") } : {}),
  };
}
