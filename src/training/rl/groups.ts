/** From attempts to what is trained on: which groups teach something, and with which advantage each answer. */
import type { RlSettings } from "../../run-record.ts";
import { groupAdvantages, isConstant } from "./advantages.ts";
import { type Attempt, isLost, type Rollout } from "./rollout.ts";

/** A rollout that is trained on. */
export interface Scored {
  readonly rollout: Rollout;
  readonly advantage: number;
}

export interface JudgedGroup {
  /** Empty where the group is left out. */
  readonly scored: readonly Scored[];
  readonly rollouts: readonly Rollout[];
  readonly lost: number;
  /** Why it is left out. */
  readonly dropped?: "constant" | "small";
}

export type GroupRules = Pick<RlSettings, "advantage" | "min_group_size"> & {
  /** Groups of equal rewards are kept. */
  readonly keepConstant: boolean;
};

/** Judges the attempts at one task, by index. */
export function judgeGroup(attempts: readonly Attempt[], rules: GroupRules): JudgedGroup {
  const rollouts = attempts.filter((attempt): attempt is Rollout => !isLost(attempt));
  const whole = { rollouts, lost: attempts.length - rollouts.length };
  // A group that was never larger is not one that lost too many.
  if (rollouts.length < Math.min(rules.min_group_size, attempts.length)) {
    return { ...whole, scored: [], dropped: "small" };
  }
  const rewards = rollouts.map(({ reward }) => reward);
  if (isConstant(rewards) && rules.advantage !== "none" && !rules.keepConstant) {
    return { ...whole, scored: [], dropped: "constant" };
  }
  const advantages = groupAdvantages(rewards, rules.advantage);
  return { ...whole, scored: rollouts.map((rollout, i) => ({ rollout, advantage: advantages[i] as number })) };
}

/** A share of a step's groups that is sent in one forward_backward, [from, to). */
export interface PartPlace {
  readonly part: number;
  readonly substep: number;
  readonly from: number;
  readonly to: number;
  /** Last of its substep: an optimizer update follows. */
  readonly isLast: boolean;
}

/** Divides groups evenly, in order: membership depends on the numbers alone. */
export function planParts(groups: number, substeps: number, minibatches: number): readonly PartPlace[] {
  const places: PartPlace[] = [];
  for (const [substep, [start, end]] of shares(0, groups, substeps).entries()) {
    const parts = shares(start, end, minibatches);
    for (const [i, [from, to]] of parts.entries()) {
      places.push({ part: places.length, substep, from, to, isLast: i === parts.length - 1 });
    }
  }
  return places;
}

/** [from, to) in `count` shares as even as can be; fewer where there is not enough for each. */
function shares(from: number, to: number, count: number): readonly (readonly [number, number])[] {
  const used = Math.min(count, to - from);
  const border = (i: number) => from + Math.floor(((to - from) * i) / used);
  return Array.from({ length: used }, (_, i) => [border(i), border(i + 1)] as const);
}
