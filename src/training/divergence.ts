/** Training that has diverged: what a server tells of the gradient, and the end of a run whose numbers are none any more. */
import { fail } from "../diagnostic.ts";
import type { RunOrder } from "../run-record.ts";

/** The gradient's norm as a server's update tells it, whatever prefix and suffix its name has there. */
export function gradNormOf(metrics: Readonly<Record<string, number>>): number | undefined {
  return Object.entries(metrics).find(([name]) => /(^|[/.])grad_norm(:|$)/.test(name))?.[1];
}

/** Fails with RL8004 where loss or gradient is not a number: all later weights would be lost. */
export function checkDivergence(
  { address }: Pick<RunOrder, "address">,
  step: number,
  { loss, gradNorm }: { readonly loss: number; readonly gradNorm?: number | undefined },
): void {
  if (Number.isFinite(loss) && (gradNorm === undefined || Number.isFinite(gradNorm))) return;
  const what = Number.isFinite(loss) ? `gradient norm is ${gradNorm}` : `loss is ${loss}`;
  fail(
    "RL8004",
    `The ${what} at step ${step} of ${address}: training has diverged and stops here. Lower learning_rate, warm it up, or set optimizer.grad_clip_norm. Checkpoints before this step are kept.`,
    { address },
  );
}
