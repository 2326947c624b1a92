/** The learning rate of a step, a function of the step alone. */
import type { Schedule } from "../run-record.ts";

/**
 * The factor for step 1, 2, …: rises linearly to 1 over `warmup_steps`, then falls from 1 towards `final_ratio`, which
 * it would reach one step after the last of `horizonSteps`, and stays there. A constant schedule stays at 1.
 */
export function scheduleFactor(schedule: Schedule, step: number, horizonSteps: number | undefined): number {
  const { type, warmup_steps: warmup, final_ratio: final } = schedule;
  if (step <= warmup) return step / warmup;
  if (type === "constant" || horizonSteps === undefined) return 1;
  const progress = Math.min(1, (step - 1 - warmup) / Math.max(1, horizonSteps - warmup));
  switch (type) {
    case "linear":
      return 1 - (1 - final) * progress;
    case "cosine":
      return final + (1 - final) * 0.5 * (1 + Math.cos(Math.PI * progress));
    default:
      return type satisfies never;
  }
}
