/** A run at work: what it was ordered to do, how its steps are made up, and its record. */
import type { RunOrder, RunSettings } from "../run-record.ts";
import { canonicalJson } from "../value.ts";
import type { Batches } from "./batches.ts";
import { type DurableCheckpoint, prunable } from "./checkpoints.ts";
import type { RunRecord } from "./record.ts";
import { scheduleFactor } from "./schedule.ts";

/** Work that takes longer than this never ends: the server's workers are dead while its API lives. */
export const WORK_LIMIT_MS = 3_600_000;

export interface ServerConnection {
  readonly url: string;
  readonly token: string | undefined;
  /** Tells one life of the server's process from the next: a model lives no longer than this. */
  readonly serverRun: string;
  /** What the server calls the base model, where that is not what the order calls it. */
  readonly model?: string;
}

export interface TrainingDeps {
  /** The run record's folder. */
  readonly folder: string;
  /** Finds the server, starting it on need; ends with the reason of `stop` where that comes first. */
  connect(): Promise<ServerConnection>;
  /** Hugging Face folder with the model's tokenizer and template. */
  readonly modelFolder: string;
  /** For graders: environment variables, and where answers of judges are remembered. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cacheFolder?: string;
  /** Asks for an end after the step at hand, with a checkpoint. */
  readonly stop: AbortSignal;
  now(): Date;
  /** How long the run goes on without a step done while its server does not answer. */
  readonly giveUpAfterMs?: number;
  /** Called at every place where a crash must do no harm; tests kill the process there. */
  at?(point: string): void;
}

export abstract class Run<S extends RunSettings = RunSettings> {
  readonly order: RunOrder<S>;
  readonly deps: TrainingDeps;
  readonly record: RunRecord;
  readonly batches: Batches;
  readonly #horizon: number | undefined;
  #total: number;

  constructor(order: RunOrder<S>, deps: TrainingDeps, record: RunRecord, batches: Batches) {
    this.order = order;
    this.deps = deps;
    this.record = record;
    this.batches = batches;
    this.#total = this.#accepted?.step ?? batches.steps(order.length);
    const { horizon } = order.settings.schedule;
    this.#horizon = horizon && batches.steps(horizon);
  }

  /** Whether something is measured after a step, for which its weights must stand still. */
  abstract evaluatesAt(step: number): boolean;

  /** Optimizer steps of the whole run. */
  get total(): number {
    return this.#total;
  }

  /** Makes a step that is done the last one. */
  endAt(step: number): void {
    this.#total = step;
  }

  at(point: string): void {
    this.deps.at?.(point);
  }

  learningRate(step: number): number {
    const { learning_rate, schedule } = this.order.settings;
    return learning_rate * scheduleFactor(schedule, step, this.#horizon);
  }

  savesAt(step: number): boolean {
    const { save_every } = this.order;
    return step === this.total || (save_every > 0 && step % save_every === 0) || this.#isKept(step);
  }

  #isKept(step: number): boolean {
    return this.order.keep_steps?.includes(step) ?? false;
  }

  /** The checkpoint that was accepted as the end of this length, also where that came before its last step. */
  get #accepted(): DurableCheckpoint | undefined {
    const length = canonicalJson(this.order.length);
    return this.record.checkpoints.list.find(({ final }) => canonicalJson(final) === length);
  }

  /** Checkpoints that may go. Those beyond the end of a shortened run stay: they are another length's. */
  get prunable(): readonly DurableCheckpoint[] {
    const reachable = this.record.checkpoints.list.filter((c) => c.step <= this.total);
    return prunable(reachable, this.order.keep_last).filter((c) => !this.#isKept(c.step));
  }

  /** Whether the last step is done and kept as this length's final checkpoint. */
  get isComplete(): boolean {
    return this.record.journal.state.done === this.total && this.#accepted?.sampler !== undefined;
  }
}
