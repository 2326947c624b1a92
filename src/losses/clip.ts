/** The clipped ratio that ppo, cispo and gspo share. */
import type { LossArguments, LossInput, LossOption, Term } from "./loss.ts";

export const CLIP_OPTIONS: readonly LossOption[] = [
  {
    name: "clip_low_threshold",
    description: "Ratios of new to old probability below this are clipped.",
    default: 0.8,
    min: 0,
  },
  {
    name: "clip_high_threshold",
    description: "Ratios of new to old probability above this are clipped.",
    default: 1.2,
    min: 0,
  },
];

/** Thresholds of single positions, in place of the options. */
export const CLIP_INPUTS: readonly LossInput[] = CLIP_OPTIONS.map(({ name }) => ({ name, required: false }));

/** clip(ratio, lo, hi) = min(max(ratio, lo), hi), so that the upper threshold wins where they cross. */
export function clipRatio({ tensors, options }: LossArguments, position: number, ratio: number): number {
  const threshold = (name: string) => (tensors[name]?.[position] ?? options[name]) as number;
  return Math.min(Math.max(ratio, threshold("clip_low_threshold")), threshold("clip_high_threshold"));
}

/** −min(r·A, clip(r)·A) and its derivative by log r: −r·A where the unclipped side is the smaller one, else 0. */
export function clippedSurrogate(ratio: number, clipped: number, advantage: number): Term {
  const plain = ratio * advantage;
  const limited = clipped * advantage;
  return plain <= limited ? [-plain, -plain] : [-limited, 0];
}
