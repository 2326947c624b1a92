/** Finds a place on a run's lineage among the checkpoints that its record lists. */
import { type Address, nameOf } from "../../address.ts";
import type { CheckpointId, RunLength } from "../../run-record.ts";
import { bestCheckpoint, type DurableCheckpoint } from "../../training/checkpoints.ts";
import { readRunSummary } from "../../training/progress.ts";
import { canonicalJson } from "../../value.ts";
import { runFolder } from "./observe.ts";

export interface FoundCheckpoint {
  readonly step: number;
  readonly training: string;
  readonly sampler?: string;
  /** Where it is kept. */
  readonly server?: Address;
}

/**
 * The checkpoint at a step, at the end of so many epochs, or the best one up to such an end (the highest reward of an eval, or the lowest
 * held-out loss); undefined if none is kept.
 */
export function findCheckpoint(folder: string, at: CheckpointId["at"]): FoundCheckpoint | undefined {
  const { durable, order } = readRunSummary(folder);
  const found = chosen(durable, at);
  return found && { ...found, ...(order ? { server: order.server } : {}) };
}

function chosen(durable: readonly DurableCheckpoint[], at: CheckpointId["at"]): DurableCheckpoint | undefined {
  if (!("best" in at)) return endAt(durable, at);
  const last = at.of && endAt(durable, at.of)?.step;
  return bestCheckpoint(last === undefined ? durable : durable.filter(({ step }) => step <= last));
}

/** The checkpoint that a plan gave an identity, in the folder of its run as that is named by now; undefined if none is kept. */
export function checkpointNamed(
  dataFolder: string,
  run: Address,
  id: Omit<CheckpointId, "run">,
): FoundCheckpoint | undefined {
  return findCheckpoint(runFolder(dataFolder, nameOf(run), id.generation, id.incarnation), id.at);
}

/** A run that ended before its last step has its end where it ended. */
function endAt(durable: readonly DurableCheckpoint[], length: RunLength): DurableCheckpoint | undefined {
  const end = durable.find(({ final }) => canonicalJson(final) === canonicalJson(length));
  return end ?? ("steps" in length ? durable.find(({ step }) => step === length.steps) : undefined);
}
