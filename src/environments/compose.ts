/** Several graders as one: a weighted sum, with an allowance or a price for length. */
import { fail } from "../diagnostic.ts";
import { type Grade, type GradeRequest, type Grader, isReward, LARGEST_REWARD, type Reply } from "./grader.ts";

export interface Part {
  readonly name: string;
  readonly weight: number;
  readonly grader: Grader;
}

export interface LengthPenalty {
  /** Characters that cost nothing. */
  readonly free: number;
  /** Characters beyond which the whole penalty is due; in between it rises evenly. */
  readonly full: number;
  /** Taken from the reward at the most. */
  readonly penalty: number;
}

/**
 * The reward is Σ weight · reward over the parts, less the penalty for length. Each part's reward is a metric under its name. If a
 * part cannot judge, the whole cannot. Grading fails with RL7103 where the sum is out of range.
 */
export function composeGraders(parts: readonly Part[], length?: LengthPenalty): Grader {
  const gradeAll = (some: readonly Part[], request: GradeRequest) =>
    Promise.all(some.map((part) => part.grader.grade(request)));
  const first = parts[0]?.grader;
  // Only the first may answer back; the others judge the answer that it ends with.
  const respond = async (request: GradeRequest): Promise<Grade | Reply> => {
    const answer = (await first?.respond?.(request)) as Grade | Reply;
    if ("messages" in answer) return answer;
    return sum([answer, ...(await gradeAll(parts.slice(1), request))], parts, request, length);
  };
  return {
    grade: async (request) => sum(await gradeAll(parts, request), parts, request, length),
    ...(first?.respond ? { respond } : {}),
    close: async () => {
      await Promise.all(parts.map((part) => part.grader.close()));
    },
  };
}

function sum(grades: readonly Grade[], parts: readonly Part[], request: GradeRequest, length?: LengthPenalty): Grade {
  const metrics: Record<string, number> = {};
  let reward = 0;
  for (const [at, { name, weight }] of parts.entries()) {
    const grade = grades[at] as Grade;
    reward += weight * grade.reward;
    metrics[`reward/${name}`] = grade.reward;
    for (const [key, value] of Object.entries(grade.metrics)) metrics[`${name}/${key}`] = value;
  }
  if (length) {
    const taken = lengthPenalty(request.completion.length, length);
    metrics["reward/length"] = -taken;
    reward -= taken;
  }
  if (!isReward(reward))
    fail(
      "RL7103",
      `The weighted rewards come to ${reward}; a reward is at most ${LARGEST_REWARD} in size. Lower the weights.`,
    );
  const notes = grades.flatMap(({ note }, at) => (note === undefined ? [] : [`${parts[at]?.name}: ${note}`]));
  return { reward, metrics, ...(notes.length > 0 ? { note: notes.join("; ") } : {}) };
}

export function lengthPenalty(characters: number, { free, full, penalty }: LengthPenalty): number {
  const share = (characters - free) / Math.max(1, full - free);
  return penalty * Math.min(1, Math.max(0, share));
}
