/** A run at work: what it was ordered to do, its rows and batches, and its record. */

import type { RunOrder } from "../run-record.ts";
import { canonicalJson } from "../value.ts";
import type { Batches } from "./batches.ts";
import { type DurableCheckpoint, prunable } from "./checkpoints.ts";
import type { RunRecord } from "./record.ts";
import type { RowStore } from "./rows.ts";
import { scheduleFactor } from "./schedule.ts";

/** Work that takes longer than this never ends: the server's workers are dead while its API lives. */
export const WORK_LIMIT_MS = 3_600_000;

export interface ServerConnection {
  readonly url: string;
  readonly token: string | undefined;
  /** Tells one life of the server's process from the next: a model lives no longer than this. */
  readonly serverRun: string;
}

export interface TrainingDeps {
  /** The run record's folder. */
  readonly folder: string;
  /** Finds the server, starting it on need. */
  connect(): Promise<ServerConnection>;
  /** Hugging Face folder with the model's tokenizer and template. */
  readonly modelFolder: string;
  /** Asks for an end after the step at hand, with a checkpoint. */
  readonly stop: AbortSignal;
  now(): Date;
  /** How long the run goes on without a step done while its server does not answer. */
  readonly giveUpAfterMs?: number;
  /** Called at every place where a crash must do no harm; tests kill the process there. */
  at?(point: string): void;
}

export class Run {
  readonly order: RunOrder;
  readonly deps: TrainingDeps;
  readonly record: RunRecord;
  readonly rows: RowStore;
  readonly batches: Batches;
  /** Optimizer steps of the whole run. */
  readonly total: number;
  readonly #horizon: number | undefined;

  constructor(order: RunOrder, deps: TrainingDeps, record: RunRecord, rows: RowStore, batches: Batches) {
    this.order = order;
    this.deps = deps;
    this.record = record;
    this.rows = rows;
    this.batches = batches;
    this.total = batches.steps(order.length);
    const { horizon } = order.settings.schedule;
    this.#horizon = horizon && batches.steps(horizon);
  }

  at(point: string): void {
    this.deps.at?.(point);
  }

  learningRate(step: number): number {
    const { learning_rate, schedule } = this.order.settings;
    return learning_rate * scheduleFactor(schedule, step, this.#horizon);
  }

  evaluatesAt(step: number): boolean {
    const { eval_every } = this.order;
    return this.rows.heldOut.length > 0 && (step === this.total || (eval_every > 0 && step % eval_every === 0));
  }

  savesAt(step: number): boolean {
    const { save_every } = this.order;
    return step === this.total || (save_every > 0 && step % save_every === 0) || this.#isKept(step);
  }

  #isKept(step: number): boolean {
    return this.order.keep_steps?.includes(step) ?? false;
  }

  /** Checkpoints that may go. Those beyond the end of a shortened run stay: they are another length's. */
  get prunable(): readonly DurableCheckpoint[] {
    const reachable = this.record.checkpoints.list.filter((c) => c.step <= this.total);
    return prunable(reachable, this.order.keep_last).filter((c) => !this.#isKept(c.step));
  }

  /** Whether the last step is done and kept as this length's final checkpoint. */
  get isComplete(): boolean {
    const kept = this.record.checkpoints.at(this.total);
    const isFinal = kept?.sampler !== undefined && canonicalJson(kept.final) === canonicalJson(this.order.length);
    return this.record.journal.state.done === this.total && isFinal;
  }
}
