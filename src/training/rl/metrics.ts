/** Every metric of a run of reinforcement learning and of an eval: its name, what it is, and its formula. */

export interface MetricInfo {
  /** As in `metrics.jsonl`; a part in capitals stands for a name. */
  readonly name: string;
  readonly description: string;
  /** Over a step where nothing else is said. r: reward, q and ℓ: log-probability of a token as sampled and as trained, G: group. */
  readonly formula: string;
  /** Where it is written. */
  readonly of: "step" | "eval" | "both";
}

const step = (name: string, formula: string, description: string): MetricInfo => ({
  name,
  formula,
  description,
  of: "step",
});
const evaluated = (name: string, formula: string, description: string): MetricInfo => ({
  name,
  formula,
  description,
  of: "eval",
});

export const METRICS: readonly MetricInfo[] = [
  step("reward/mean", "mean(r)", "Mean reward of the step's answers, also of groups that are left out."),
  step("reward/std", "sqrt(mean((r − mean(r))²))", "Population standard deviation of the same rewards."),
  step("groups/used", "count", "Tasks that were trained on."),
  step("groups/constant", "count", "Tasks left out because all their answers got the same reward."),
  step("groups/small", "count", "Tasks left out because fewer than `min_group_size` of their answers were graded."),
  step("rollouts/graded", "count", "Answers that were graded."),
  step("rollouts/lost", "count", "Answers lost to faults, after all retries."),
  step("rollouts/reused", "count", "Answers that a crash left and that were not sampled again."),
  step("rollouts/stale", "count", "Answers dropped because the weights that sampled them were too old."),
  step("answer/tokens", "mean over answers", "Tokens that the policy sampled, over all turns."),
  step("answer/turns", "mean over answers", "Answers of the policy in one conversation."),
  step("answer/cut", "share of answers", "Answers that `max_tokens` cut in any turn."),
  step("off_policy/steps", "mean over answers", "Steps between the weights that sampled and those that are trained."),
  step("kl/k1", "mean(q − ℓ)", "KL of the sampling to the trained policy, in nats a token; its sign may be wrong."),
  step("kl/k2", "½ · mean((q − ℓ)²)", "The same by the squared difference: small errors, slightly biased."),
  step("kl/k3", "mean(exp(ℓ − q) − 1 − (ℓ − q))", "The same without bias and never negative."),
  step(
    "kl/reference",
    "mean(q − p)",
    "KL of the sampling policy to the reference p of `kl_penalty`, where there is one.",
  ),
  step("entropy", "mean(−q)", "Entropy of the sampling policy, in nats a token."),
  step(
    "ratio/mean",
    "mean(exp(ℓ − q))",
    "Ratio of probabilities; of gspo the one of the whole answer, exp(mean(ℓ − q)).",
  ),
  step("ratio/max", "max of the same", "The largest ratio."),
  step("ratio/clipped", "share of tokens", "Tokens whose ratio is outside of the loss's clip range."),
  step("time/sample", "seconds", "From the first sample to the last grade."),
  step(
    "time/train",
    "seconds",
    "What waiting for the server's results took after that, with forward passes of two_pass.",
  ),
  step(
    "memory/client",
    "bytes",
    "Memory of rlcli's own process that trains, resident at the end of the step; of every run.",
  ),
  step("time/client", "seconds", "Processor time that the run's process used since the step before was measured."),
  {
    name: "env/METRIC",
    formula: "mean over answers that have it",
    description: "What a grader says beside the reward; `env/reward/PART` is the reward of one of several graders.",
    of: "both",
  },
  evaluated(
    "reward",
    "mean over tasks of mean(r)",
    "With half the width of its 95 % interval, 1.96 · s/√tasks, s over tasks' means.",
  ),
  evaluated(
    "pass@K",
    "mean over tasks of 1 − C(n−c, K)/C(n, K)",
    "Chance that one of K answers passes, from c of n that got at least `pass_reward`; for K = 1, 2, 4, … up to `samples`.",
  ),
];

/** The entry of a metric's name; undefined for what is none. */
export function metricNamed(name: string): MetricInfo | undefined {
  const exact = METRICS.find((metric) => metric.name === name);
  if (exact) return exact;
  if (/^env\/./.test(name)) return METRICS.find((metric) => metric.name === "env/METRIC");
  return /^pass@[1-9]\d*$/.test(name) ? METRICS.find((metric) => metric.name === "pass@K") : undefined;
}
