/** From a run's block to what its training loop reads, and to what makes a generation. */
import { type Digest, digestJson } from "../../digest.ts";
import type { SamplingOrder } from "../../environment-order.ts";
import type { Upstream } from "../../kind.ts";
import type {
  LossStrategy,
  OptimizerSettings,
  RlSettings,
  RunLength,
  RunSettings,
  Schedule,
  SupervisedSettings,
  TrainingSettings,
  TrainOn,
} from "../../run-record.ts";
import type { SpecNode } from "../../spec.ts";
import { canonicalJson, type Json, type Value } from "../../value.ts";
import { hashedLeaves, numberAt, stringAt } from "../attributes.ts";
import type { RunSeen } from "./observe.ts";

/**
 * Bumped when our own numerics change what a generation trains to. It enters the hash of new runs only: a recorded run keeps
 * the number it was trained under.
 */
export const SEMANTICS = 1;

export function lengthOf(node: SpecNode): RunLength {
  const steps = numberAt(node, "steps");
  return steps === undefined ? { epochs: numberAt(node, "epochs") ?? 1 } : { steps };
}

/** The schedule with its horizon filled in: an explicit one, or the run's length at its first apply (frozen by the hash). */
export function scheduleOf(node: SpecNode): Schedule {
  const type = (stringAt(node, "schedule.type") ?? "constant") as Schedule["type"];
  const warmupSteps = numberAt(node, "schedule.warmup_steps") ?? 0;
  const finalRatio = numberAt(node, "schedule.final_ratio") ?? 0;
  const steps = numberAt(node, "schedule.horizon.steps");
  const epochs = numberAt(node, "schedule.horizon.epochs");
  const explicit = steps === undefined ? (epochs === undefined ? undefined : { epochs }) : { steps };
  const horizon = explicit ?? (type === "constant" ? undefined : lengthOf(node));
  return { type, warmup_steps: warmupSteps, final_ratio: finalRatio, ...(horizon ? { horizon } : {}) };
}

export function hasExplicitHorizon(node: SpecNode): boolean {
  return node.attributes.has("schedule.horizon.steps") || node.attributes.has("schedule.horizon.epochs");
}

/** Everything the loop needs of a block, complete. `loss` is the referenced block, absent for a built-in name. */
export function settingsOf(node: SpecNode, loss: SpecNode | undefined): RunSettings {
  const shared = sharedSettings(node, loss);
  return stringAt(node, "type") === "rl" ? rlSettings(node, shared) : supervisedSettings(node, shared);
}

function sharedSettings(node: SpecNode, loss: SpecNode | undefined): TrainingSettings {
  const strategy = loss && stringAt(loss, "strategy");
  return {
    learning_rate: numberAt(node, "learning_rate") as number,
    schedule: scheduleOf(node),
    optimizer: optimizerOf(node),
    normalize: stringAt(node, "normalize") as TrainingSettings["normalize"],
    seed: numberAt(node, "seed") as number,
    lora_rank: numberAt(node, "lora_rank") as number,
    template_kwargs: (node.body.template_kwargs as Record<string, unknown> | undefined) ?? {},
    loss: {
      type: (loss && stringAt(loss, "type")) ?? stringAt(node, "loss") ?? "cross_entropy",
      options: lossOptions(loss),
      ...(strategy === undefined || strategy === "fused" ? {} : { strategy: strategy as LossStrategy }),
    },
  };
}

function supervisedSettings(node: SpecNode, shared: TrainingSettings): SupervisedSettings {
  const number = (path: string) => numberAt(node, path) as number;
  const batchTokens = numberAt(node, "batch_tokens");
  return {
    type: "sl",
    ...shared,
    batch_size: number("batch_size"),
    ...(batchTokens === undefined ? {} : { batch_tokens: batchTokens }),
    max_length: number("max_length"),
    train_on: stringAt(node, "train_on") as TrainOn,
    test_size: number("test_size"),
  };
}

function rlSettings(node: SpecNode, shared: TrainingSettings): RlSettings {
  const number = (path: string) => numberAt(node, path) as number;
  return {
    type: "rl",
    ...shared,
    group_size: number("group_size"),
    groups_per_batch: number("groups_per_batch"),
    substeps: number("substeps"),
    minibatches: number("minibatches"),
    advantage: stringAt(node, "advantage") as RlSettings["advantage"],
    sampling: samplingOf(node),
    kl_penalty: number("kl_penalty"),
    max_steps_off_policy: number("max_steps_off_policy"),
    min_group_size: number("min_group_size"),
  };
}

/** How a run or an eval samples. */
export function samplingOf(node: SpecNode): SamplingOrder {
  const number = (path: string) => numberAt(node, path) as number;
  return {
    temperature: number("temperature"),
    top_p: number("top_p"),
    max_tokens: number("max_tokens"),
    stop: (node.attributes.get("stop")?.value as readonly string[] | undefined) ?? [],
  };
}

function optimizerOf(node: SpecNode): OptimizerSettings {
  const settings: Record<string, number> = {};
  for (const key of ["beta1", "beta2", "eps", "weight_decay", "grad_clip_norm"]) {
    const value = numberAt(node, `optimizer.${key}`);
    if (value !== undefined) settings[key] = value;
  }
  return settings;
}

function lossOptions(loss: SpecNode | undefined): Record<string, number> {
  const options: Record<string, number> = {};
  for (const [path, { value }] of loss?.attributes ?? []) if (typeof value === "number") options[path] = value;
  return options;
}

/** Attributes that are names of other blocks: never hashed, since what they name is. */
export const NAMES: ReadonlySet<string> = new Set(["server", "dataset", "environment", "loss", "from", "kl_reference"]);

export interface GenerationInput {
  readonly node: SpecNode;
  readonly loss: SpecNode | undefined;
  readonly dataset: Digest;
  /** What an environment is but for its tasks. */
  readonly environment?: Digest | undefined;
  /** The checkpoint of the KL penalty's reference, where one is named. */
  readonly reference?: Json | undefined;
  /** The base model's name and what it resolved to; of a folder only that. */
  readonly model: { readonly name?: string; readonly revision: Json };
  /** The checkpoint this run starts from, by lineage; absent for the base model. */
  readonly parent: Json | undefined;
  readonly semantics: number;
}

/** The generation: a digest of normalised content, never of names (design.md, Semantics). */
export function generationOf(input: GenerationInput): Digest {
  const { node, loss, dataset, environment, reference, model, parent, semantics } = input;
  const leaves: Record<string, Value> = hashedLeaves(node.attributes);
  for (const name of NAMES) delete leaves[name];
  const schedule = scheduleOf(node);
  return digestJson({
    rlcli: 1,
    kind: "run",
    semantics,
    leaves,
    loss: loss ? hashedLeaves(loss.attributes) : { type: stringAt(node, "loss") },
    // A constant rate without warm-up is the same whatever else the block says about schedules.
    schedule: schedule.type === "constant" && schedule.warmup_steps === 0 ? null : schedule,
    dataset,
    ...(environment === undefined ? {} : { environment }),
    ...(reference === undefined ? {} : { reference }),
    model,
    parent: parent ?? null,
  });
}

/**
 * Where a child starts, or what is measured or deployed: a run's lineage and a place on it. Which step is the best may change where the
 * run ends elsewhere, so its end is part of that place.
 */
export function parentOf(parent: Upstream, selector: string | undefined): Json {
  const end = endOf(parent);
  const at = selector === undefined ? end : selector === "best" ? { best: true, of: end } : { steps: Number(selector) };
  return { generation: parent.lineage.hash, incarnation: parent.lineage.incarnation, at };
}

/**
 * The end of a run: of its length, whichever step that will be, so that it is known before it is trained. An end that was accepted by
 * hand is another checkpoint and is named by its step.
 */
function endOf({ node, lineage, observation }: Upstream): { [key: string]: number } {
  const length = lengthOf(node);
  const { kept = [] } = (observation.seen ?? {}) as Partial<RunSeen>;
  const current = kept.find((k) => k.generation === lineage.hash && k.incarnation === lineage.incarnation);
  const accepted = current?.durable.find((c) => c.accepted && canonicalJson(c.final) === canonicalJson(length));
  return accepted ? { steps: accepted.step } : { ...length };
}
