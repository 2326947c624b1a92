/** One optimizer step: journalled, sent, awaited, judged. */
import { fail } from "../diagnostic.ts";
import type { JournalEntry, MetricsLine } from "../run-record.ts";
import type { PassResult } from "../tinker/data.ts";
import type { Future } from "../tinker/future.ts";
import type { TrainingModel } from "../tinker/model.ts";
import { type Batch, batchLoss, buildBatch, chunks, wireLoss } from "./batch.ts";
import { type Run, WORK_LIMIT_MS } from "./run.ts";

type StepEntry = Extract<JournalEntry, { t: "step" }>;

/** A step whose requests the server has taken. */
export interface SentStep {
  readonly step: number;
  readonly batch: Batch;
  readonly learningRate: number;
  readonly passes: readonly Future<PassResult>[];
  readonly update: Future<Readonly<Record<string, number>>>;
  /** `performance.now()` when it was sent. */
  readonly sentAt: number;
}

/** Waiting longer than this for a result is said aloud. */
const QUIET_WAIT_MS = 30_000;

/** Begins a step: it is on disk before anything of it is sent. */
export async function beginStep(run: Run, model: TrainingModel, step: number): Promise<SentStep> {
  const batch = batchOf(run, step);
  run.at("step:begin");
  const entry: StepEntry = {
    t: "step",
    at: run.record.at(),
    step,
    seq: model.reserve(chunks(batch.data).length + 1),
    batch: batch.digest,
    learningRate: run.learningRate(step),
  };
  run.record.journal.begin(entry);
  run.at("step:journaled");
  return sendStep(run, model, entry, batch);
}

/** Sends a journalled step again: the same numbers with the same bytes, which the server recognises. */
export async function resendStep(run: Run, model: TrainingModel, entry: StepEntry): Promise<SentStep> {
  const batch = batchOf(run, entry.step);
  if (batch.digest !== entry.batch) {
    fail(
      "RL8007",
      `Step ${entry.step} of ${run.order.address} was begun with another batch than its rows give now, so it cannot be sent again as it was. The dataset, the tokenizer or rlcli itself changed in between. Start a new incarnation with \`rlcli apply --replace ${run.order.address}\`.`,
      { address: run.order.address },
    );
  }
  return sendStep(run, model, entry, batch);
}

function batchOf(run: Run, step: number): Batch {
  const datums = run.batches.at(step).rows.flatMap((row) => run.rows.read(row));
  return buildBatch(datums, run.order.settings.normalize);
}

async function sendStep(run: Run, model: TrainingModel, entry: StepEntry, batch: Batch): Promise<SentStep> {
  const { loss, optimizer } = run.order.settings;
  const passes: Future<PassResult>[] = [];
  const sentAt = performance.now();
  for (const [i, data] of chunks(batch.data).entries()) {
    passes.push(await model.forwardBackward(data, wireLoss(loss), { seqId: entry.seq[i] as number }));
    run.at("step:pass-sent");
  }
  const params = { learning_rate: entry.learningRate, ...optimizer };
  const update = await model.optimStep(params, { seqId: entry.seq.at(-1) as number });
  run.at("step:sent");
  return { step: entry.step, batch, learningRate: entry.learningRate, passes, update, sentAt };
}

export interface StepOutcome {
  readonly loss: number;
  readonly gradNorm?: number;
}

/** Waits for a step. Fails with RL8004 where its loss or gradient is not a number: all later weights would be lost. */
export async function awaitStep(run: Run, sent: SentStep): Promise<StepOutcome> {
  let quietUntilMs = QUIET_WAIT_MS;
  const onWaiting = (waitedMs: number, state: string | undefined) => {
    if (waitedMs < quietUntilMs) return;
    quietUntilMs = waitedMs + QUIET_WAIT_MS;
    const since = `since ${Math.round(waitedMs / 1000)} s${state ? ` (${state})` : ""}`;
    run.record.phase("waiting", `for the server's result of step ${sent.step} ${since}`);
  };
  const waiting = { onWaiting, deadlineMs: WORK_LIMIT_MS };
  const results: PassResult[] = [];
  for (const pass of sent.passes) results.push(await pass.result(waiting));
  const metrics = await sent.update.result(waiting);
  run.at("step:results");
  const loss = batchLoss(sent.batch.data, results);
  const gradNorm = Object.entries(metrics).find(([name]) => /(^|[/.])grad_norm(:|$)/.test(name))?.[1];
  if (!Number.isFinite(loss) || (gradNorm !== undefined && !Number.isFinite(gradNorm))) {
    const what = Number.isFinite(loss) ? `gradient norm is ${gradNorm}` : `loss is ${loss}`;
    fail(
      "RL8004",
      `The ${what} at step ${sent.step} of ${run.order.address}: training has diverged and stops here. Lower learning_rate, warm it up, or set optimizer.grad_clip_norm. Checkpoints before this step are kept.`,
      { address: run.order.address },
    );
  }
  return { loss, ...(gradNorm === undefined ? {} : { gradNorm }) };
}

/** The step's line of metrics; `seconds` is the time it took. */
export function metricsOf(
  run: Run,
  sent: SentStep,
  outcome: StepOutcome,
  seconds: number,
): Omit<MetricsLine, "heldOutLoss"> {
  const { step, batch, learningRate } = sent;
  const { rows, epoch } = run.batches.at(step);
  return {
    step,
    at: run.record.at(),
    epoch,
    learningRate,
    loss: outcome.loss,
    tokens: batch.tokens,
    trainedTokens: batch.trainedTokens,
    rows: rows.length,
    seconds,
    tokensPerSecond: batch.tokens / Math.max(seconds, 1e-6),
    ...(outcome.gradNorm === undefined ? {} : { gradNorm: outcome.gradNorm }),
  };
}
