/** Finds a place on a run's lineage among the checkpoints that its record lists. */
import type { CheckpointId } from "../../run-record.ts";
import { bestCheckpoint } from "../../training/checkpoints.ts";
import { readRunSummary } from "../../training/progress.ts";
import { canonicalJson } from "../../value.ts";

export interface FoundCheckpoint {
  readonly step: number;
  readonly training: string;
  readonly sampler?: string;
}

/** The checkpoint at a step, at the end of so many epochs, or the one of lowest held-out loss; undefined if none is kept. */
export function findCheckpoint(folder: string, at: CheckpointId["at"]): FoundCheckpoint | undefined {
  const { durable } = readRunSummary(folder);
  if ("best" in at) return bestCheckpoint(durable);
  // A run that ended before its last step has its end where it ended.
  const end = durable.find(({ final }) => canonicalJson(final) === canonicalJson(at));
  return end ?? ("steps" in at ? durable.find((checkpoint) => checkpoint.step === at.steps) : undefined);
}
