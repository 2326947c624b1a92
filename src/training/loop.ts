/**
 * The supervised loop over one lineage. Two steps are in flight at a time, so that the server does not wait for us;
 * where a step is followed by an evaluation or a checkpoint, which must see exactly its weights, the queue runs empty
 * first.
 */
import { Clock } from "./clock.ts";
import { heldOutLoss } from "./evaluate.ts";
import type { Lineage } from "./lineage.ts";
import { prune, saveCheckpoint } from "./save.ts";
import { awaitStep, beginStep, metricsOf, resendStep, type SentStep } from "./step.ts";
import type { SupervisedRun } from "./supervised-run.ts";

const IN_FLIGHT = 2;

/** Trains to the end, or to a checkpoint after the step at hand where a stop was asked for. */
export async function trainLineage(run: SupervisedRun, lineage: Lineage): Promise<"complete" | "interrupted"> {
  const { journal } = run.record;
  run.record.phase("training");
  const queue: SentStep[] = [];
  const clock = new Clock();
  for (const entry of journal.state.pending) queue.push(await resendStep(run, lineage, entry));
  // A crash may have come between a step and its checkpoint.
  await prune(run, lineage.client);
  const { done, save } = journal.state;
  if (queue.length === 0 && done > 0 && (run.savesAt(done) || save !== undefined)) await saveCheckpoint(run, lineage);
  for (;;) {
    for (let next = nextStep(run, queue); next !== undefined; next = nextStep(run, queue)) {
      queue.push(await beginStep(run, lineage, next));
    }
    const sent = queue.shift();
    if (!sent) break;
    await finishStep(run, lineage, sent, clock, queue.length === 0);
    if (queue.length === 0 && run.savesAt(sent.step)) await saveCheckpoint(run, lineage);
  }
  if (journal.state.done >= run.total) return "complete";
  if (journal.state.done > 0) await saveCheckpoint(run, lineage);
  return "interrupted";
}

/** The step to send now, if one may be sent before those in the queue are done. */
function nextStep(run: SupervisedRun, queue: readonly SentStep[]): number | undefined {
  const last = queue.at(-1)?.step;
  const step = (last ?? run.record.journal.state.done) + 1;
  if (step > run.total || queue.length >= IN_FLIGHT || run.deps.stop.aborted) return undefined;
  return last !== undefined && (run.evaluatesAt(last) || run.savesAt(last)) ? undefined : step;
}

/** `isAlone`: nothing was sent after this step, so the model's weights are exactly those after it. */
async function finishStep(
  run: SupervisedRun,
  { model }: Lineage,
  sent: SentStep,
  clock: Clock,
  isAlone: boolean,
): Promise<void> {
  const { record } = run;
  const outcome = await awaitStep(run, sent);
  const seconds = clock.secondsSince(sent.sentAt);
  const isEvaluated = isAlone && run.evaluatesAt(sent.step);
  const heldOut = isEvaluated ? { heldOutLoss: await heldOutLoss(run, model, sent.step) } : {};
  const line = { ...metricsOf(run, sent, outcome, seconds), ...heldOut };
  record.metrics.add(line);
  run.at("step:metrics");
  record.journal.note({ t: "done", at: record.at(), step: sent.step });
  run.at("step:done");
  const { loss, tokensPerSecond } = line;
  const etaSeconds = clock.eta(run.total - sent.step);
  record.emit({ t: "progress", step: sent.step, steps: run.total, loss, tokensPerSecond, etaSeconds, ...heldOut });
}
