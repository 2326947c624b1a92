/**
 * Runs, from order to end. Everything that happened is in the run record; a process that is killed anywhere and started
 * again ends with the same weights, bit for bit, on a server whose computations are deterministic.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Diagnostic, diagnostic, messageOf, RlcliError } from "../diagnostic.ts";
import type { RunEnd, RunOrder, RunSettings } from "../run-record.ts";
import { TinkerError } from "../tinker/errors.ts";
import { clientOf, closeLineage, type Lineage, openLineage } from "./lineage.ts";
import { RunRecord } from "./record.ts";
import type { Run, TrainingDeps } from "./run.ts";
import { prune } from "./save.ts";

export type { ServerConnection, TrainingDeps } from "./run.ts";

const GIVE_UP_AFTER_MS = 600_000;
/** Lineages begun one after another without a single step done before the run fails. */
const MAX_FRUITLESS = 5;
const RECOVERY_PAUSE_MS = 500;

/** A kind of run: what it trains on, and how. */
export interface Training<S extends RunSettings, R extends Run<S>> {
  /** Reads what the run is trained on. Undefined where `deps.stop` came first. */
  open(order: RunOrder<S>, deps: TrainingDeps, record: RunRecord): Promise<R | undefined>;
  /** Trains to the end, or to a checkpoint after the step at hand where a stop was asked for. */
  train(run: R, lineage: Lineage): Promise<"complete" | "interrupted">;
  close(run: R): void | Promise<void>;
}

/**
 * Trains a run to its end, or until `deps.stop`. Never throws for what a user can mend: the end carries the
 * diagnostics. The caller holds the run's lease and is the only writer of the record.
 */
export async function workOn<S extends RunSettings, R extends Run<S>>(
  training: Training<S, R>,
  order: RunOrder<S>,
  deps: TrainingDeps,
): Promise<RunEnd> {
  let record: RunRecord;
  try {
    record = new RunRecord(deps.folder, deps.now);
  } catch (error) {
    return { status: "failed", step: 0, diagnostics: diagnosticsOf(error, order) };
  }
  try {
    return finish(record, await work(training, order, deps, record), deps);
  } catch (error) {
    const diagnostics = diagnosticsOf(error, order);
    return finish(record, { status: "failed", step: record.journal.state.done, diagnostics }, deps);
  } finally {
    record.close();
  }
}

/** Writes the end down, as far as the disk allows. */
function finish(record: RunRecord, end: RunEnd, deps: TrainingDeps): RunEnd {
  try {
    const { end: known } = record.journal.state;
    const isNews = known?.status !== end.status || known.step !== end.step;
    if (isNews) record.journal.begin({ t: "end", at: record.at(), status: end.status, step: end.step });
    deps.at?.("end:journaled");
    record.emit({ t: "end", end });
  } catch (error) {
    if (end.status !== "failed")
      return { status: "failed", step: end.step, diagnostics: [unwritable(error, deps.folder)] };
  }
  return end;
}

async function work<S extends RunSettings, R extends Run<S>>(
  training: Training<S, R>,
  order: RunOrder<S>,
  deps: TrainingDeps,
  record: RunRecord,
): Promise<RunEnd> {
  const run = await training.open(order, deps, record);
  if (!run) return { status: "interrupted", step: record.journal.state.done };
  try {
    const status = run.isComplete ? "complete" : await trainOn(run, training.train);
    if (run.prunable.length > 0) await pruneLeftovers(run);
    return { status, step: record.journal.state.done };
  } finally {
    await training.close(run);
  }
}

type Train<R extends Run> = (run: R, lineage: Lineage) => Promise<"complete" | "interrupted">;

/** Deletes what a crash right after the last save left; a finished run does not fail for it. */
async function pruneLeftovers(run: Run): Promise<void> {
  try {
    const client = clientOf(await run.deps.connect(), run.record);
    await prune(run, client).finally(() => client.close());
  } catch (error) {
    if (isStop(error, run.deps.stop)) return;
    if (!(error instanceof RlcliError)) throw error;
    for (const cause of error.diagnostics)
      run.record.emit({ t: "warning", diagnostic: { ...cause, severity: "warning" } });
  }
}

/** Trains on one lineage after another until one reaches the end, as long as steps get done. */
async function trainOn<R extends Run>(run: R, train: Train<R>): Promise<"complete" | "interrupted"> {
  const { journal } = run.record;
  const { giveUpAfterMs = GIVE_UP_AFTER_MS, stop } = run.deps;
  let progress = { done: journal.state.done, at: performance.now(), fruitless: 0 };
  for (;;) {
    if (stop.aborted) return "interrupted";
    try {
      return await trainOnce(run, train);
    } catch (error) {
      if (isStop(error, stop)) return "interrupted";
      const { done } = journal.state;
      if (done > progress.done) progress = { done, at: performance.now(), fruitless: 0 };
      const isOnceMore = isBatchFault(error) && progress.fruitless === 0;
      if (!(error instanceof TinkerError) || !(isPassing(error) || isOnceMore)) throw error;
      if (error.kind === "gone" || isOnceMore) journal.abandon();
      const isAway = error.kind === "network" || error.kind === "busy" || AWAY.includes(error.status);
      progress.fruitless += isAway ? 0 : 1;
      if (progress.fruitless > MAX_FRUITLESS || performance.now() - progress.at > giveUpAfterMs) throw error;
      const left = giveUpAfterMs - (performance.now() - progress.at);
      const limit = new Date(run.deps.now().getTime() + left).toISOString().slice(11, 19);
      run.record.phase("recovering", `${error.message}; giving up at ${limit} UTC`);
      await sleep(RECOVERY_PAUSE_MS);
    }
  }
}

/** What waiting for a server ends with when the run is asked to stop. */
const isStop = (error: unknown, stop: AbortSignal): boolean =>
  stop.aborted && (error === stop.reason || (error instanceof Error && error.name === "AbortError"));

/** What a proxy says while the server behind it starts again. */
const AWAY: readonly (number | undefined)[] = [502, 503, 504];

/** Whether looking for the server anew may help. A restarted server has another key, so 401 may mean no more than that. */
function isPassing({ kind, status }: TinkerError): boolean {
  return kind === "network" || kind === "busy" || kind === "gone" || status === 401 || AWAY.includes(status);
}

/**
 * SkyRL's way to say that work failed, and all work that happened to run with it: another's fault perhaps, so it is worth
 * a second try. The optimizer step behind it may have been taken without it, so that means another model.
 */
function isBatchFault(error: unknown): boolean {
  return error instanceof TinkerError && error.kind === "failed" && error.status === 400;
}

async function trainOnce<R extends Run>(run: R, train: Train<R>): Promise<"complete" | "interrupted"> {
  const lineage = await openLineage(run);
  // After a lost connection the model may live on, and the next process or turn goes on with it.
  let unload = true;
  try {
    return await train(run, lineage);
  } catch (error) {
    unload = !(error instanceof TinkerError) || !isPassing(error);
    throw error;
  } finally {
    await closeLineage(lineage, unload);
  }
}

/** Any failure as diagnostics; a bug of ours is thrown on. */
function diagnosticsOf(error: unknown, order: RunOrder): readonly Diagnostic[] {
  const { address } = order;
  if (error instanceof RlcliError) return error.diagnostics.map((d) => ({ address, ...d }));
  if (error instanceof TinkerError) return [diagnostic("RL8008", `${error.message.replace(/\.+$/, "")}.`, { address })];
  if (typeof (error as NodeJS.ErrnoException)?.syscall === "string") return [unwritable(error, "the run's folder")];
  throw error;
}

function unwritable(error: unknown, where: string): Diagnostic {
  return diagnostic("RL8009", `The run record in ${where} cannot be written: ${messageOf(error)}.`);
}
