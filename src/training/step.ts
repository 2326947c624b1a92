/** One optimizer step: journalled, sent, awaited, judged. */
import { fail } from "../diagnostic.ts";
import type { JournalEntry, MetricsLine } from "../run-record.ts";
import type { PassResult } from "../tinker/data.ts";
import type { Future, Pending } from "../tinker/future.ts";
import { type Batch, batchLoss, buildBatch, wireLoss } from "./batch.ts";
import { checkDivergence, gradNormOf } from "./divergence.ts";
import { type Gradient, planGradient, requestCounts, sendGradient } from "./gradient.ts";
import type { Lineage } from "./lineage.ts";
import { WORK_LIMIT_MS } from "./run.ts";
import type { SupervisedRun } from "./supervised-run.ts";

type StepEntry = Extract<JournalEntry, { t: "step" }>;

/** A step whose requests the server has taken. */
export interface SentStep {
  readonly step: number;
  readonly batch: Batch;
  readonly learningRate: number;
  readonly pass: Pending<PassResult>;
  readonly update: Future<Readonly<Record<string, number>>>;
  /** `performance.now()` when it was sent. */
  readonly sentAt: number;
}

/** Waiting longer than this for a result is said aloud. */
const QUIET_WAIT_MS = 30_000;

/** Begins a step: it is on disk before anything of it is sent. */
export async function beginStep(run: SupervisedRun, lineage: Lineage, step: number): Promise<SentStep> {
  const batch = batchOf(run, step);
  const gradient = gradientOf(run, lineage, batch);
  const requests = await requestCounts(lineage.model, gradient);
  run.at("step:begin");
  const entry: StepEntry = {
    t: "step",
    at: run.record.at(),
    step,
    seq: lineage.model.reserve(requests.forward + requests.backward + 1),
    batch: batch.digest,
    learningRate: run.learningRate(step),
  };
  run.record.journal.begin(entry);
  run.at("step:journaled");
  return sendStep(run, lineage, entry, batch, gradient);
}

/** Sends a journalled step again: the same numbers with the same bytes, which the server recognises. */
export async function resendStep(run: SupervisedRun, lineage: Lineage, entry: StepEntry): Promise<SentStep> {
  const batch = batchOf(run, entry.step);
  if (batch.digest !== entry.batch) {
    fail(
      "RL8007",
      `Step ${entry.step} of ${run.order.address} was begun with another batch than its rows give now, so it cannot be sent again as it was. The dataset, the tokenizer or rlcli itself changed in between. Start a new incarnation with \`rlcli apply --replace ${run.order.address}\`.`,
      { address: run.order.address },
    );
  }
  return sendStep(run, lineage, entry, batch, gradientOf(run, lineage, batch));
}

function batchOf(run: SupervisedRun, step: number): Batch {
  const datums = run.batches.at(step).rows.flatMap((row) => run.rows.read(row));
  return buildBatch(datums, run.order.settings.normalize);
}

/** What this server must be sent for the batch. Fails with RL8011 where it cannot compute the loss. */
function gradientOf(run: SupervisedRun, { kind }: Lineage, batch: Batch): Gradient {
  const plan = planGradient(kind, wireLoss(run.order.settings.loss), batch.data);
  if (plan.type !== "refused") return plan;
  return fail("RL8011", `${run.order.address} cannot train there: ${plan.reason}.`, { address: run.order.address });
}

async function sendStep(
  run: SupervisedRun,
  { model }: Lineage,
  entry: StepEntry,
  batch: Batch,
  gradient: Gradient,
): Promise<SentStep> {
  const sentAt = performance.now();
  const { pass } = await sendGradient(model, gradient, entry.seq.slice(0, -1));
  run.at("step:pass-sent");
  const params = { learning_rate: entry.learningRate, ...run.order.settings.optimizer };
  const update = await model.optimStep(params, { seqId: entry.seq.at(-1) as number });
  run.at("step:sent");
  return { step: entry.step, batch, learningRate: entry.learningRate, pass, update, sentAt };
}

export interface StepOutcome {
  readonly loss: number;
  readonly gradNorm?: number;
}

/** Waits for a step. Fails with RL8004 where its loss or gradient is not a number: all later weights would be lost. */
export async function awaitStep(run: SupervisedRun, sent: SentStep): Promise<StepOutcome> {
  let quietUntilMs = QUIET_WAIT_MS;
  const onWaiting = (waitedMs: number, state: string | undefined) => {
    if (waitedMs < quietUntilMs) return;
    quietUntilMs = waitedMs + QUIET_WAIT_MS;
    const since = `since ${Math.round(waitedMs / 1000)} s${state ? ` (${state})` : ""}`;
    run.record.phase("waiting", `for the server's result of step ${sent.step} ${since}`);
  };
  const waiting = { onWaiting, deadlineMs: WORK_LIMIT_MS };
  const result = await sent.pass.result(waiting);
  const metrics = await sent.update.result(waiting);
  run.at("step:results");
  const loss = batchLoss(sent.batch.data, [result]);
  const gradNorm = gradNormOf(metrics);
  checkDivergence(run.order, sent.step, { loss, gradNorm });
  return { loss, ...(gradNorm === undefined ? {} : { gradNorm }) };
}

/** The step's line of metrics; `seconds` is the time it took. */
export function metricsOf(
  run: SupervisedRun,
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
    values: { "memory/client": process.memoryUsage.rss() },
    ...(outcome.gradNorm === undefined ? {} : { gradNorm: outcome.gradNorm }),
  };
}
