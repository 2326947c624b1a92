/** One optimizer step: journalled, sent, awaited, judged. */
import { fail } from "../diagnostic.ts";
import type { JournalEntry, MetricsLine } from "../run-record.ts";
import type { PassResult } from "../tinker/data.ts";
import type { Future, Pending } from "../tinker/future.ts";
import { planStep, type StepPlan } from "../tinker/quirks/reduction.ts";
import { type Batch, batchLoss, buildBatch, wireLoss } from "./batch.ts";
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
  const requests = await requestsOf(run, lineage, batch);
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
  return sendStep(run, lineage, entry, batch);
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
  return sendStep(run, lineage, entry, batch);
}

function batchOf(run: SupervisedRun, step: number): Batch {
  const datums = run.batches.at(step).rows.flatMap((row) => run.rows.read(row));
  return buildBatch(datums, run.order.settings.normalize);
}

type Sendable = Exclude<StepPlan, { type: "refused" }>;

/** What this server must be sent for the batch. Fails with RL8011 where it cannot compute the loss. */
function planOf(run: SupervisedRun, { kind }: Lineage, batch: Batch): Sendable {
  const plan = planStep(kind, wireLoss(run.order.settings.loss), batch.data);
  if (plan.type !== "refused") return plan;
  return fail("RL8011", `${run.order.address} cannot train there: ${plan.reason}.`, { address: run.order.address });
}

/** How many numbers of the model each part of a step takes. Sizes alone decide, so log-probabilities may be missing. */
async function requestsOf(
  run: SupervisedRun,
  lineage: Lineage,
  batch: Batch,
): Promise<{ readonly forward: number; readonly backward: number }> {
  const { model } = lineage;
  const plan = planOf(run, lineage, batch);
  if (plan.type === "send") return { forward: 0, backward: await model.requestsFor(plan.data) };
  const { data } = plan.from(batch.data.map(({ input }) => new Float32Array(input.length)));
  return { forward: await model.requestsFor(batch.data), backward: await model.requestsFor(data) };
}

async function sendStep(run: SupervisedRun, lineage: Lineage, entry: StepEntry, batch: Batch): Promise<SentStep> {
  const { model } = lineage;
  const sentAt = performance.now();
  const pass = await sendPass(run, lineage, entry, batch);
  const params = { learning_rate: entry.learningRate, ...run.order.settings.optimizer };
  const update = await model.optimStep(params, { seqId: entry.seq.at(-1) as number });
  run.at("step:sent");
  return { step: entry.step, batch, learningRate: entry.learningRate, pass, update, sentAt };
}

async function sendPass(
  run: SupervisedRun,
  lineage: Lineage,
  entry: StepEntry,
  batch: Batch,
): Promise<Pending<PassResult>> {
  const { model } = lineage;
  const seqIds = entry.seq.slice(0, -1);
  const plan = planOf(run, lineage, batch);
  if (plan.type === "send") {
    const sent = await model.forwardBackward(plan.data, plan.loss, { seqIds });
    run.at("step:pass-sent");
    return sent;
  }
  const { forward } = await requestsOf(run, lineage, batch);
  const first = await model.forward(batch.data, wireLoss(run.order.settings.loss), {
    seqIds: seqIds.slice(0, forward),
  });
  const { outputs } = await first.result({ deadlineMs: WORK_LIMIT_MS });
  const { data, loss } = plan.from(outputs.map(({ logprobs }) => logprobs as Float32Array));
  const sent = await model.forwardBackward(data, loss, { seqIds: seqIds.slice(forward) });
  run.at("step:pass-sent");
  return sent;
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
    ...(outcome.gradNorm === undefined ? {} : { gradNorm: outcome.gradNorm }),
  };
}
