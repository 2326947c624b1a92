/** The loss over the held-out rows, as `normalize` says, without changing anything. */

import type { PassResult } from "../tinker/data.ts";
import type { Future } from "../tinker/future.ts";
import type { TrainingModel } from "../tinker/model.ts";
import type { TokenDatum } from "../tokens/conversation.ts";
import { batchLoss, buildBatch, wireLoss } from "./batch.ts";
import { type Run, WORK_LIMIT_MS } from "./run.ts";

/** Rows in flight at a time: bounds memory whatever test_size is. */
const ROWS_AT_ONCE = 64;

/**
 * Held-out loss after `step`, in nats: over tokens or over sequences. Its requests have numbers of their own, journalled
 * like a step's, so that a repeat after a crash is recognised.
 */
export async function heldOutLoss(run: Run, model: TrainingModel, step: number): Promise<number> {
  const { record, rows, order } = run;
  const groups: number[][] = [];
  for (let i = 0; i < rows.heldOut.length; i += ROWS_AT_ONCE) groups.push(rows.heldOut.slice(i, i + ROWS_AT_ONCE));
  const known = record.journal.state.evals.get(step);
  const seq = known?.length === groups.length ? known : model.reserve(groups.length);
  if (seq !== known) record.journal.begin({ t: "eval", at: record.at(), step, seq });
  run.at("eval:journaled");
  let weighted = 0;
  let weights = 0;
  for (const [i, group] of groups.entries()) {
    const datums = group.flatMap((row) => rows.read(row));
    const { data } = buildBatch(datums, order.settings.normalize);
    const share = shareOf(datums, order.settings.normalize);
    weighted += share * batchLoss(data, [await passOver(run, model, data, seq[i] as number)]);
    weights += share;
  }
  return weighted / weights;
}

/** What a group counts for in the mean over all. */
function shareOf(datums: readonly TokenDatum[], normalize: "token" | "sequence"): number {
  if (normalize === "sequence") return datums.length;
  return datums.reduce((total, d) => total + d.weights.subarray(1).reduce((a, b) => a + b, 0), 0);
}

async function passOver(run: Run, model: TrainingModel, data: ReturnType<typeof buildBatch>["data"], seqId: number) {
  const { loss } = run.order.settings;
  const pass: Future<PassResult> = await model.forward(data, wireLoss(loss), { seqId });
  run.at("eval:sent");
  return pass.result({ deadlineMs: WORK_LIMIT_MS });
}
