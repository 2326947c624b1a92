/** What a step came to, as numbers by name. */
import { lossNamed } from "../../losses/registry.ts";
import type { Datum, Loss, PassResult } from "../../tinker/data.ts";
import { missingOption, optionsOf } from "../gradient.ts";
import { answerTokens, referenceDrift } from "./batch.ts";
import { type ClipRange, measureDrift } from "./drift.ts";
import type { JudgedGroup } from "./groups.ts";
import type { Rollout } from "./rollout.ts";

export type Values = Readonly<Record<string, number>>;

/** Of the rewards and answers that a step is trained on. */
export function measureGroups(groups: readonly JudgedGroup[], step: number): Values {
  const rollouts = groups.flatMap((group) => group.rollouts);
  const rewards = rollouts.map(({ reward }) => reward);
  const count = (which: JudgedGroup["dropped"]) => groups.filter(({ dropped }) => dropped === which).length;
  const tokens = rollouts.map(answerTokens);
  return {
    ...(rewards.length > 0 ? { "reward/mean": mean(rewards), "reward/std": deviation(rewards) } : {}),
    "groups/used": count(undefined),
    "groups/constant": count("constant"),
    "groups/small": count("small"),
    "rollouts/graded": rollouts.length,
    "rollouts/lost": groups.reduce((sum, { lost }) => sum + lost, 0),
    ...(rollouts.length > 0 ? answersOf(rollouts, tokens) : {}),
    ...(rollouts.length > 0 ? { "off_policy/steps": mean(rollouts.map(({ weights }) => step - 1 - weights)) } : {}),
    ...(rollouts.some(({ reference }) => reference) ? { "kl/reference": referenceDrift(rollouts) } : {}),
    ...environmentMetrics(rollouts),
  };
}

function answersOf(rollouts: readonly Rollout[], tokens: readonly number[]): Values {
  const isCut = ({ turns }: Rollout) => turns.some(({ stop }) => stop === "length");
  return {
    "answer/tokens": mean(tokens),
    "answer/turns": mean(rollouts.map(({ turns }) => turns.length)),
    "answer/cut": mean(rollouts.map((rollout) => Number(isCut(rollout)))),
  };
}

/** Means of what the graders say beside rewards, over the rollouts that have it. */
function environmentMetrics(rollouts: readonly Rollout[]): Values {
  const values = new Map<string, number[]>();
  for (const { metrics } of rollouts) {
    for (const [name, value] of Object.entries(metrics)) {
      const list = values.get(name);
      if (list) list.push(value);
      else values.set(name, [value]);
    }
  }
  return Object.fromEntries([...values].map(([name, list]) => [`env/${name}`, mean(list)]));
}

/** A part of a step that was computed: the data whose sum is the loss, and what came back for it. */
export interface ComputedPart {
  readonly data: readonly Datum[];
  readonly result: PassResult;
}

const NOTHING = new Float32Array(0);

/** The loss as the formula has it, and how far the policy was from the one that sampled. */
export function measureParts(loss: Loss, parts: readonly ComputedPart[]): { readonly loss: number; values: Values } {
  const definition = lossNamed(loss.name);
  const options = optionsOf(loss);
  // Where an option is the server's own, only the server knows the loss.
  const isKnown = missingOption(loss) === undefined;
  const computed = parts.flatMap(({ data, result }) =>
    data.map(({ lossInputs }, i) => ({ outputs: result.outputs[i]?.logprobs ?? NOTHING, tensors: lossInputs })),
  );
  const total = isKnown
    ? (definition?.sum(computed, options) ?? 0)
    : parts.reduce((sum, { result }) => sum + (result.metrics["loss:sum"] ?? Number.NaN), 0);
  const compared = computed.map(({ outputs, tensors }) => {
    const { logprobs, weights } = tensors as Record<string, Float32Array>;
    return { policy: outputs, sampler: logprobs as Float32Array, weights: weights as Float32Array };
  });
  const drift = measureDrift(compared, clipRange(options, definition?.perSequence ?? false));
  if (!drift) return { loss: total, values: {} };
  return {
    loss: total,
    values: {
      "kl/k1": drift.klK1,
      "kl/k2": drift.klK2,
      "kl/k3": drift.klK3,
      entropy: drift.entropy,
      "ratio/mean": drift.ratioMean,
      "ratio/max": drift.ratioMax,
      "ratio/clipped": drift.clipFraction,
    },
  };
}

function clipRange(options: Readonly<Record<string, number>>, perSequence: boolean): ClipRange {
  const { clip_low_threshold: low = 0, clip_high_threshold: high = Number.POSITIVE_INFINITY } = options;
  return { low, high, perSequence };
}

export const mean = (values: readonly number[]): number =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

function deviation(values: readonly number[]): number {
  const centre = mean(values);
  return Math.sqrt(mean(values.map((value) => (value - centre) ** 2)));
}
