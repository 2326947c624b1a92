/**
 * Rewards of a group (the samples of one prompt) to advantages: how much better each did than its siblings. A group in which all
 * got the same teaches nothing and is told apart.
 */

/** What a reward is compared with, and on which scale. */
export type AdvantageMode = "center" | "std" | "leave_one_out" | "none";

/** Added to a standard deviation before dividing by it, so that rewards which differ by rounding do not explode. */
const STD_EPSILON = 1e-6;

/**
 * [G] rewards → [G] advantages:
 *
 * - `center`: r − mean, as Dr. GRPO (arXiv 2503.20783) and the Tinker cookbook have it.
 * - `std`: (r − mean) / (std + 1e-6), population standard deviation, as GRPO (arXiv 2402.03300).
 * - `leave_one_out`: r − mean of the others, as RLOO (arXiv 2402.14740); `center` times G/(G−1).
 * - `none`: r itself.
 *
 * Throws RangeError for a reward that is not finite: such a rollout was not graded and must not be trained on.
 */
export function groupAdvantages(rewards: ArrayLike<number>, mode: AdvantageMode): Float64Array {
  const count = rewards.length;
  const values = Float64Array.from(rewards);
  for (const reward of values) if (!Number.isFinite(reward)) throw new RangeError(`a reward of ${reward}`);
  if (mode === "none" || count === 0) return values;
  const mean = values.reduce((sum, reward) => sum + reward, 0) / count;
  const centred = values.map((reward) => reward - mean);
  switch (mode) {
    case "center":
      return centred;
    case "std": {
      const deviation = Math.sqrt(centred.reduce((sum, a) => sum + a * a, 0) / count);
      return centred.map((a) => a / (deviation + STD_EPSILON));
    }
    case "leave_one_out":
      return count === 1 ? centred : centred.map((a) => (a * count) / (count - 1));
  }
}

/** Whether all rewards of a group are equal, so that every centred advantage is 0. */
export function isConstant(rewards: ArrayLike<number>): boolean {
  for (let at = 1; at < rewards.length; at++) if (rewards[at] !== rewards[0]) return false;
  return true;
}
