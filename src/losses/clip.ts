/** The clipped ratio that ppo, cispo and gspo share. */
import type { Arithmetic, FormulaDatum, FormulaTerms } from "./formula.ts";
import type { LossInput, LossOption } from "./loss.ts";

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
export const CLIP_INPUTS: readonly LossInput[] = CLIP_OPTIONS.map(({ name }) => ({
  name,
  required: false,
  from: ({ tensors, options }) => tensors[name] ?? (options[name] as number),
}));

/** clip(ratio, lo, hi) = min(max(ratio, lo), hi), so that the upper threshold wins where they cross. */
export function clipRatio<V>(m: Arithmetic<V>, { tensor }: FormulaDatum<V>, ratio: V): V {
  return m.min(m.max(ratio, tensor("clip_low_threshold")), tensor("clip_high_threshold"));
}

/** r = exp(ℓ − q). */
export function ratioOf<V>(m: Arithmetic<V>, { output, tensor }: FormulaDatum<V>): V {
  return m.exp(m.sub(output, tensor("logprobs")));
}

/** −min(r·A, clip(r)·A) and its derivative by log r: −r·A where the unclipped side is the smaller one, else 0. */
export function clippedSurrogate<V>(m: Arithmetic<V>, datum: FormulaDatum<V>, ratio: V): FormulaTerms<V> {
  const advantages = datum.tensor("advantages");
  const plain = m.mul(ratio, advantages);
  const limited = m.mul(clipRatio(m, datum, ratio), advantages);
  const isClipped = m.less(limited, plain);
  return {
    loss: m.mul(m.select(isClipped, limited, plain), -1),
    derivative: m.select(isClipped, 0, m.mul(plain, -1)),
  };
}
