/** Quantities in few characters. */
import type { SandboxCount } from "../../run-record.ts";

/** 950, 12.3k, 4.5M. */
export function compact(count: number): string {
  if (count < 10_000) return String(Math.round(count));
  if (count < 1e6) return `${(count / 1e3).toFixed(count < 1e5 ? 1 : 0)}k`;
  return `${(count / 1e6).toFixed(1)}M`;
}

/** 1 step, 4 steps. */
export const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** 3.2 s, 41 s, 12 min, 2.5 h. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return `${(seconds / 3600).toFixed(1)} h`;
}

/** 512 B, 1.4 MB; powers of ten, as disks are sold and `ls --si` counts. */
export function bytes(count: number): string {
  if (count < 1000) return `${count} B`;
  const unit = count < 1e6 ? "kB" : count < 1e9 ? "MB" : "GB";
  return `${(count / { kB: 1e3, MB: 1e6, GB: 1e9 }[unit]).toFixed(1)} ${unit}`;
}

export interface Measured {
  readonly loss?: number | undefined;
  readonly heldOutLoss?: number | undefined;
  /** Of a run of reinforcement learning, whose loss says nothing about how good it is. */
  readonly reward?: number | undefined;
  readonly evalReward?: number | undefined;
}

/** What tells how good a step is: `loss 0.0123`, `held-out 0.5`; of reinforcement learning `reward 0.412`, `eval 0.5`. */
export function measuredWords({ loss, heldOutLoss, reward, evalReward }: Measured): readonly string[] {
  const first = reward !== undefined ? `reward ${reward.toFixed(3)}` : loss === undefined ? undefined : lossWords(loss);
  return [
    first,
    heldOutLoss === undefined ? undefined : `held-out ${heldOutLoss.toFixed(4)}`,
    evalReward === undefined ? undefined : `eval ${evalReward.toFixed(3)}`,
  ].filter((word) => word !== undefined);
}

/** `5/8 sandboxes`. */
export const sandboxWords = ({ inUse, places }: SandboxCount): string => `${inUse}/${places} sandboxes`;

/** A tiny negative loss is no `-0.0000`. */
function lossWords(loss: number): string {
  return `loss ${loss.toFixed(4).replace(/^-(0\.0+)$/, "$1")}`;
}
