/** Finds a place on a run's lineage among the checkpoints that its record lists. */
import type { CheckpointId } from "../../run-record.ts";
import { bestCheckpoint } from "../../training/checkpoints.ts";
import { readRunSummary } from "../../training/progress.ts";

export interface FoundCheckpoint {
  readonly step: number;
  readonly training: string;
  readonly sampler?: string;
}

/** The checkpoint at a step, at the end of so many epochs, or the one of lowest held-out loss; undefined if none is kept. */
export function findCheckpoint(folder: string, at: CheckpointId["at"]): FoundCheckpoint | undefined {
  const { durable } = readRunSummary(folder);
  if ("steps" in at) return durable.find((checkpoint) => checkpoint.step === at.steps);
  if ("epochs" in at) {
    return durable.find(({ final }) => final !== undefined && "epochs" in final && final.epochs === at.epochs);
  }
  return bestCheckpoint(durable);
}
