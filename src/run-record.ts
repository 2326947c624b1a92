/**
 * The run record: everything a run leaves in `.rlcli/runs/<name>/<generation>/<incarnation>/`. It is the authority for
 * progress; state only points here. Writers are the run's worker (all files) and `apply` (`spec.json`, once).
 *
 *   spec.json          RunOrder: what to train, complete and normalised; written before the worker starts
 *   journal.jsonl      JournalEntry: each step before it is sent and after it is done; what resume reads
 *   metrics.jsonl      MetricsLine: one line a step
 *   checkpoints.jsonl  CheckpointLine: durable checkpoints, and those pruned later
 *   rollouts/          one file a step: what was sampled, and its grades (`rl`; training/rl/rollouts.ts)
 *   evals.jsonl        results of evals made while the run trains (`rl`)
 *   events.jsonl       RunEvent: progress for whoever is attached
 *   worker.json        WorkerStatus: who works on it now, or how it ended
 *   wire.jsonl         WireLine (training/wire-trace.ts): each request, without what it says; wire.1.jsonl came before
 *   log.txt            the worker's own words
 *   index.json         which rows are trained on and how long they are; made from the dataset, may be deleted
 */
import type { Address } from "./address.ts";
import type { Diagnostic } from "./diagnostic.ts";
import type { Digest } from "./digest.ts";
import type { EnvironmentOrder, EvalOrder, SamplingOrder } from "./environment-order.ts";
import type { ProcessIdentity } from "./process.ts";

export const RUN_RECORD_VERSION = 1;

/** How far a run goes: a number of optimizer steps, or of passes over its training rows. */
export type RunLength = { readonly steps: number } | { readonly epochs: number };

/** A checkpoint's identity: known at plan, since it names the lineage and not the bytes. */
export interface CheckpointId {
  readonly run: Address;
  readonly generation: Digest;
  readonly incarnation: number;
  /** A step that was or will be reached, or the end of a run given in epochs; or the best up to such an end, of all without `of`. */
  readonly at: RunLength | { readonly best: true; readonly of?: RunLength };
}

/** Learning-rate schedule, over `horizon` optimizer steps or epochs; constant has no horizon. */
export interface Schedule {
  readonly type: "constant" | "linear" | "cosine";
  /** Steps over which the rate rises from 0, before the schedule proper. */
  readonly warmup_steps: number;
  /** The rate at the end as a share of the full one. */
  readonly final_ratio: number;
  readonly horizon?: RunLength;
}

/** Optimizer fields the spec leaves out stay undefined: "as the server has it". */
export interface OptimizerSettings {
  readonly beta1?: number;
  readonly beta2?: number;
  readonly eps?: number;
  readonly weight_decay?: number;
  /** L2 norm to which the whole gradient is clipped; 0 is off. */
  readonly grad_clip_norm?: number;
}

export type TrainOn = "all_assistant" | "last_assistant" | "all";

/** How the gradient of a loss is got: by the server in one call, or in rlcli from a forward pass. */
export type LossStrategy = "fused" | "two_pass" | "auto";

/** The hashed part of any run, with every default filled in. */
export interface TrainingSettings {
  readonly learning_rate: number;
  readonly schedule: Schedule;
  readonly optimizer: OptimizerSettings;
  readonly normalize: "token" | "sequence";
  readonly seed: number;
  /** 0 trains all weights. */
  readonly lora_rank: number;
  /** Extra variables for the chat template. */
  readonly template_kwargs: Readonly<Record<string, unknown>>;
  readonly loss: {
    readonly type: string;
    readonly options: Readonly<Record<string, number>>;
    /** Not hashed: the result is the same. */
    readonly strategy?: LossStrategy;
  };
}

export interface SupervisedSettings extends TrainingSettings {
  readonly type: "sl";
  /** Most rows in a batch. */
  readonly batch_size: number;
  /** Most tokens in a batch, counted before padding; a longer single row still makes a batch of its own. */
  readonly batch_tokens?: number;
  /** Rows longer than this many tokens are cut at the right. */
  readonly max_length: number;
  readonly train_on: TrainOn;
  /** Rows held out from training, chosen by a stable hash. */
  readonly test_size: number;
}

export interface RlSettings extends TrainingSettings {
  readonly type: "rl";
  /** Answers to each task. */
  readonly group_size: number;
  /** Tasks of a step. */
  readonly groups_per_batch: number;
  /** Optimizer updates of a step. */
  readonly substeps: number;
  /** forward_backward calls of a substep. */
  readonly minibatches: number;
  readonly advantage: "center" | "std" | "leave_one_out" | "none";
  readonly sampling: SamplingOrder;
  readonly kl_penalty: number;
  /** How many steps old the weights may be that sampled an answer. */
  readonly max_steps_off_policy: number;
  readonly min_group_size: number;
}

export type RunSettings = SupervisedSettings | RlSettings;

/** What a run of type `rl` is told beside its settings: outside the hash, or hashed by what it names. */
export interface RlOrder {
  readonly environment: EnvironmentOrder;
  /** Made while the run trains. */
  readonly evals: readonly EvalOrder[];
  /** Share of a step's answers that may be lost to faults. */
  readonly max_failure_rate: number;
  readonly early_stop: { readonly target?: number; readonly collapse?: number; readonly window: number };
  /** Sampler weights of the KL penalty's reference; the base model where absent. */
  readonly reference?: string;
  /** Keeps groups in which all answers got the same reward, so that every part of a step is exercised. */
  readonly keep_constant?: boolean;
}

export interface RunOrder<S extends RunSettings = RunSettings> {
  readonly formatVersion: typeof RUN_RECORD_VERSION;
  readonly project: string;
  readonly address: Address;
  readonly generation: Digest;
  readonly incarnation: number;
  readonly settings: S;
  /** Of a run of type `rl`. */
  readonly rl?: RlOrder;
  /** Outside the hash: how far to go and how often to look. Rewritten when a run is extended. */
  readonly length: RunLength;
  /** A durable checkpoint every so many steps (the last step always has one). */
  readonly save_every: number;
  /** Held-out loss every so many steps; 0 is only at the end (and not at all where test_size is 0). */
  readonly eval_every: number;
  readonly keep_last: number;
  /** Steps that other runs start from (`from: x@40`): saved, and never deleted as rolling ones. */
  readonly keep_steps?: readonly number[];
  /** Base model as the spec names it: `builtin:tiny`, a folder, or a hub name. */
  readonly model: string;
  readonly server: Address;
  /** Rows to train on, or the environment's tasks. */
  readonly dataset: {
    readonly address: Address;
    readonly digest: Digest;
    /** Rows as canonical JSONL, absolute. */
    readonly path: string;
  };
  /** Start from another run's checkpoint: weights, and with `optimizer` also its moments and step count. */
  readonly from?: {
    readonly checkpoint: CheckpointId;
    readonly path: string;
    readonly optimizer: boolean;
  };
}

/**
 * What the journal says. `open` starts a lineage on one server-side model; `step` is written and synced before anything of
 * that step is sent; `done` after its results are here. A `step` without `done` at the end may or may not have been applied:
 * if the server's model still lives the same requests are sent again with the same `seq_id`s (the server answers a
 * repeat from what it already did), else the run goes back to the last durable checkpoint.
 */
export type JournalEntry =
  | {
      readonly t: "open";
      readonly at: string;
      readonly session: string;
      readonly model: string;
      readonly serverRun: string;
      /** Steps already in the weights when this lineage began. */
      readonly step: number;
      readonly loaded?: string;
    }
  | {
      readonly t: "step";
      readonly at: string;
      readonly step: number;
      readonly seq: readonly number[];
      readonly batch: Digest;
      readonly learningRate: number;
    }
  | {
      /** Weights for sampling what the step is trained on (`rl`). */
      readonly t: "sampler";
      readonly at: string;
      readonly step: number;
      readonly seq: readonly number[];
    }
  | {
      /** One forward_backward of a step that has several (`rl`); what it is made of is in `rollouts/`. */
      readonly t: "part";
      readonly at: string;
      readonly step: number;
      /** From 0, over all substeps. */
      readonly part: number;
      readonly seq: readonly number[];
      readonly batch: Digest;
    }
  | {
      /** The optimizer update after a substep's parts (`rl`). */
      readonly t: "update";
      readonly at: string;
      readonly step: number;
      /** From 0. */
      readonly substep: number;
      readonly seq: readonly number[];
      readonly learningRate: number;
    }
  | { readonly t: "done"; readonly at: string; readonly step: number }
  | {
      /** Held-out passes of a step: no weights change, but they use numbers of the model. */
      readonly t: "eval";
      readonly at: string;
      readonly step: number;
      readonly seq: readonly number[];
    }
  | {
      readonly t: "save";
      readonly at: string;
      readonly step: number;
      readonly name: string;
      readonly seq: readonly number[];
    }
  | { readonly t: "saved"; readonly at: string; readonly step: number }
  | {
      readonly t: "rollback";
      readonly at: string;
      readonly from: number;
      readonly to: number;
      readonly reason: string;
    }
  | {
      readonly t: "end";
      readonly at: string;
      readonly status: RunEnd["status"];
      readonly step: number;
    };

export interface MetricsLine {
  readonly step: number;
  readonly at: string;
  /** Fraction of an epoch completed after this step. */
  readonly epoch: number;
  readonly learningRate: number;
  /** Mean over the batch as `normalize` says, in nats a token. */
  readonly loss: number;
  readonly tokens: number;
  readonly trainedTokens: number;
  readonly rows: number;
  readonly seconds: number;
  readonly tokensPerSecond: number;
  readonly heldOutLoss?: number;
  readonly gradNorm?: number;
  /** Mean reward of an eval made after this step (`rl`). */
  readonly evalReward?: number;
  /** What else was measured, by name: `memory/client`; of `rl` `reward/mean`, `groups/constant`, `kl/k1`, `time/sample`, … */
  readonly values?: Readonly<Record<string, number>>;
}

export type CheckpointLine =
  | {
      readonly t: "checkpoint";
      readonly at: string;
      readonly step: number;
      /** `tinker://…/weights/…`: loads with its optimizer. */
      readonly training: string;
      /** `tinker://…/sampler_weights/…`: kept for final and best. */
      readonly sampler?: string;
      readonly heldOutLoss?: number;
      /** Mean reward of an eval at this step (`rl`). */
      readonly evalReward?: number;
      readonly final?: RunLength;
      /** It was made the final one by hand (`rlcli run finish`), at another step than where the length ends by itself. */
      readonly accepted?: true;
    }
  | { readonly t: "pruned"; readonly at: string; readonly step: number };

/** How a worker ended. */
export interface RunEnd {
  readonly status: "complete" | "interrupted" | "failed";
  readonly step: number;
  readonly diagnostics?: readonly Diagnostic[];
}

/** How fast a run went, for estimates of the next. */
export interface RunRate {
  /** Median over its last steps. */
  readonly secondsPerStep: number;
  /** Mean. */
  readonly tokensPerStep: number;
  /** Absent where a token budget makes epochs unequal. */
  readonly stepsPerEpoch?: number;
}

export interface WorkerStatus {
  readonly formatVersion: typeof RUN_RECORD_VERSION;
  readonly process: ProcessIdentity;
  readonly leaseToken: number;
  readonly startedAt: string;
  readonly end?: RunEnd;
  /** With the end, if there were steps. */
  readonly rate?: RunRate;
}

/** Sandboxes that are there, those started ahead included, and how many may be at once. */
export interface SandboxCount {
  readonly inUse: number;
  readonly places: number;
}

export type RunEvent =
  | {
      readonly t: "phase";
      readonly at: string;
      readonly phase: string;
      readonly detail?: string;
    }
  | {
      readonly t: "progress";
      readonly at: string;
      readonly step: number;
      readonly steps: number;
      readonly loss: number;
      readonly tokensPerSecond: number;
      readonly etaSeconds?: number;
      readonly heldOutLoss?: number;
      /** Mean over the step's answers (`rl`). */
      readonly reward?: number;
      readonly evalReward?: number;
      /** Most at once since the step before (an environment with sandboxes). */
      readonly sandboxes?: SandboxCount;
    }
  | {
      /** While a step is at work, where the number has changed; once a second at the most. */
      readonly t: "sandboxes";
      readonly at: string;
      /** The one that is being made. */
      readonly step: number;
      /** Now. */
      readonly sandboxes: SandboxCount;
    }
  | {
      readonly t: "checkpoint";
      readonly at: string;
      readonly step: number;
      readonly path: string;
    }
  | {
      readonly t: "warning";
      readonly at: string;
      readonly diagnostic: Diagnostic;
    }
  | { readonly t: "end"; readonly at: string; readonly end: RunEnd };
