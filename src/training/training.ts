/** The way into training: a run of any type, from its order to its end. */
import type { RlSettings, RunEnd, RunOrder, SupervisedSettings } from "../run-record.ts";
import type { TrainingDeps } from "./run.ts";
import { workOn } from "./work.ts";

export type { ServerConnection, TrainingDeps } from "./run.ts";

/**
 * Trains a run to its end, or until `deps.stop`. Never throws for what a user can mend: the end carries the
 * diagnostics. The caller holds the run's lease and is the only writer of the record.
 */
export async function runTraining(order: RunOrder, deps: TrainingDeps): Promise<RunEnd> {
  if (order.settings.type === "rl") {
    const { reinforcement } = await import("./rl/training.ts");
    return workOn(reinforcement, order as RunOrder<RlSettings>, deps);
  }
  const { supervised } = await import("./supervised.ts");
  return workOn(supervised, order as RunOrder<SupervisedSettings>, deps);
}
