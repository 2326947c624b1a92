/** The loss over the held-out rows, as `normalize` says, without changing anything. */

import type { Datum } from "../tinker/data.ts";
import type { TrainingModel } from "../tinker/model.ts";
import type { TokenDatum } from "../tokens/conversation.ts";
import { batchLoss, buildBatch, wireLoss } from "./batch.ts";
import { WORK_LIMIT_MS } from "./run.ts";
import type { SupervisedRun } from "./supervised-run.ts";

/** Rows in flight at a time: bounds memory whatever test_size is. */
const ROWS_AT_ONCE = 64;

/**
 * Held-out loss after `step`, in nats: over tokens or over sequences. Its requests have numbers of their own, journalled
 * like a step's, so that a repeat after a crash is recognised.
 */
export async function heldOutLoss(run: SupervisedRun, model: TrainingModel, step: number): Promise<number> {
  const { record, rows, order } = run;
  const { normalize } = order.settings;
  const groups: number[][] = [];
  for (let i = 0; i < rows.heldOut.length; i += ROWS_AT_ONCE) groups.push(rows.heldOut.slice(i, i + ROWS_AT_ONCE));
  const dataOf = (group: readonly number[]) => group.flatMap((row) => rows.read(row));
  const counts: number[] = [];
  for (const group of groups) counts.push(await model.requestsFor(buildBatch(dataOf(group), normalize).data));
  const total = counts.reduce((a, b) => a + b, 0);
  const known = record.journal.state.evals.get(step);
  const seq = known?.length === total ? known : model.reserve(total);
  if (seq !== known) record.journal.begin({ t: "eval", at: record.at(), step, seq });
  run.at("eval:journaled");
  let weighted = 0;
  let weights = 0;
  let sent = 0;
  for (const [i, group] of groups.entries()) {
    const datums = dataOf(group);
    const { data } = buildBatch(datums, normalize);
    const share = shareOf(datums, normalize);
    const seqIds = seq.slice(sent, sent + (counts[i] as number));
    sent += seqIds.length;
    weighted += share * batchLoss(data, [await passOver(run, model, data, seqIds)]);
    weights += share;
  }
  return weighted / weights;
}

/** What a group counts for in the mean over all. */
function shareOf(datums: readonly TokenDatum[], normalize: "token" | "sequence"): number {
  if (normalize === "sequence") return datums.length;
  return datums.reduce((total, d) => total + d.weights.subarray(1).reduce((a, b) => a + b, 0), 0);
}

async function passOver(run: SupervisedRun, model: TrainingModel, data: readonly Datum[], seqIds: readonly number[]) {
  const { loss } = run.order.settings;
  const pass = await model.forward(data, wireLoss(loss), { seqIds });
  run.at("eval:sent");
  return pass.result({ deadlineMs: WORK_LIMIT_MS });
}
