/** A small run of reinforcement learning for tests: tasks on disk, a grader that an untrained model satisfies now and then. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { digestBytes } from "../../../src/digest.ts";
import type { EnvironmentOrder, EvalOrder, GraderOrder, SamplingOrder } from "../../../src/environment-order.ts";
import type { RlOrder, RlSettings, RunOrder } from "../../../src/run-record.ts";

const SAMPLING: SamplingOrder = { temperature: 1, top_p: 1, max_tokens: 6, stop: [] };

export const RL_SETTINGS: RlSettings = {
  type: "rl",
  learning_rate: 3e-3,
  schedule: { type: "constant", warmup_steps: 0, final_ratio: 0 },
  optimizer: { grad_clip_norm: 1 },
  normalize: "sequence",
  seed: 1,
  lora_rank: 0,
  template_kwargs: {},
  loss: { type: "gspo", options: { clip_low_threshold: 0.8, clip_high_threshold: 1.2 } },
  group_size: 4,
  groups_per_batch: 4,
  substeps: 2,
  minibatches: 2,
  advantage: "center",
  sampling: SAMPLING,
  kl_penalty: 0,
  max_steps_off_policy: 0,
  min_group_size: 2,
};

/** Satisfied where a letter occurs. */
const LETTER: GraderOrder = {
  type: "match",
  name: "match",
  weight: 1,
  options: { mode: "regex", pattern: "[a-z]" },
  timeoutMs: 60_000,
};

export interface RlOptions extends Omit<Partial<RunOrder<RlSettings>>, "settings" | "dataset" | "rl"> {
  readonly settings?: Partial<RlSettings>;
  readonly rl?: Partial<RlOrder>;
  readonly environment?: Partial<EnvironmentOrder>;
  readonly eval?: Partial<EvalOrder>;
}

/** Writes the tasks into a new folder and returns the order to train on them. */
export function makeRlOrder(options: RlOptions = {}): { order: RunOrder<RlSettings>; folder: string } {
  const { settings, rl, environment: changes, eval: evalChanges, ...rest } = options;
  const base = mkdtempSync(join(tmpdir(), "rlcli-rl-"));
  const path = join(base, "tasks.jsonl");
  const text = Array.from({ length: 9 }, (_, i) => `${JSON.stringify({ question: `Say ${i}`, answer: `${i}` })}\n`);
  writeFileSync(path, text.join(""));
  const folder = join(base, "record");
  mkdirSync(folder);
  const tasks = { address: "dataset.tasks", digest: digestBytes(text.join("")), path } as const;
  const environment: EnvironmentOrder = {
    address: "environment.letters",
    folder: base,
    tasks,
    question: "question",
    few_shot: [],
    graders: [LETTER],
    max_turns: 1,
    retries: 0,
    ...changes,
  };
  const watching: EvalOrder = {
    address: "eval.letters",
    environment,
    sampling: SAMPLING,
    tasks: 3,
    samples: 2,
    seed: 7,
    pass_reward: 1,
    template_kwargs: {},
    every: 2,
    ...evalChanges,
  };
  const order: RunOrder<RlSettings> = {
    formatVersion: 1,
    project: "test",
    address: "run.agent",
    generation: digestBytes("generation"),
    incarnation: 1,
    length: { steps: 4 },
    save_every: 2,
    eval_every: 0,
    keep_last: 1,
    model: "builtin:tiny",
    server: "server.default",
    dataset: tasks,
    ...rest,
    settings: { ...RL_SETTINGS, ...settings },
    rl: { environment, evals: [watching], max_failure_rate: 0.2, early_stop: { window: 10 }, ...rl },
  };
  writeFileSync(join(folder, "spec.json"), JSON.stringify(order));
  return { order, folder };
}
