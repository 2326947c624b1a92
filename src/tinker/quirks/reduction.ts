/**
 * One meaning of a step on every server. A loop says what it wants as data whose plain sum, Σ w·loss, is the loss: what
 * `normalize` averages over is in the weights. Here that becomes the data to send, so that the gradient which the server
 * applies is that of this sum.
 *
 * Losses with advantages are homogeneous in them (section 5.1): c·loss(A) = loss(c·A) for c ≥ 0. So what a weight must
 * scale can be put into the advantages, and `weights` becomes a plain mask, which gspo's mean over a sequence needs.
 */
import type { Datum, Loss } from "../data.ts";
import { inputLength } from "../input.ts";
import { SERVER_TRAITS, type ServerKind } from "../quirks.ts";

/** What to send for a step. */
export type StepPlan =
  | { readonly type: "send"; readonly loss: Loss; readonly data: readonly Datum[] }
  /**
   * The loss has no advantages to scale, and scaling weights changes nothing on this server: log-probabilities are needed
   * first, from a forward pass over the data as it is, and the step is then sent as importance sampling.
   */
  | {
      readonly type: "forward first";
      /** The step from the log-probabilities [N] of each datum. */
      readonly from: (logprobs: readonly Float32Array[]) => { readonly loss: Loss; readonly data: readonly Datum[] };
    }
  | { readonly type: "refused"; readonly reason: string };

/** `data` is all of the step: every datum that is sent until the next optim_step. */
export function planStep(kind: ServerKind, loss: Loss, data: readonly Datum[]): StepPlan {
  const traits = SERVER_TRAITS[kind];
  if (!traits.losses.includes(loss.name)) return refused(`${kind} servers have no loss ${loss.name}`);
  const options = optionsFor(kind, loss);
  if (typeof options === "string") return refused(options);
  if (!traits.scoresAnyTargets && !data.every(isShifted))
    return refused(`${kind} servers score only the input's own next tokens, and these targets are others`);
  if (loss.name === "cross_entropy") {
    if (traits.reduction === "sum" || hasEqualShares(data)) return { type: "send", loss: options, data };
    return { type: "forward first", from: (logprobs) => asImportanceSampling(data, logprobs) };
  }
  if (!scalesWithAdvantages(loss, data)) {
    // There is nothing to scale by: only a plain sum of weighted losses means the same.
    if (traits.reduction === "sum" && traits.readsRlWeights) return { type: "send", loss: options, data };
    return refused(`${loss.name} cannot be given weights on ${kind} servers`);
  }
  return { type: "send", loss: options, data: data.map((datum) => foldWeights(kind, loss, datum, data.length)) };
}

/** dro has a penalty without advantages; a critic's loss has none at all. */
function scalesWithAdvantages({ name }: Loss, data: readonly Datum[]): boolean {
  return name !== "dro" && data.every(({ lossInputs }) => lossInputs.advantages instanceof Float32Array);
}

const refused = (reason: string): StepPlan => ({ type: "refused", reason });

/** The loss as this server may be told of it; the reason where it cannot do what is asked. */
function optionsFor(kind: ServerKind, loss: Loss): Loss | string {
  const fixed = SERVER_TRAITS[kind].fixedOptions[loss.name];
  if (!fixed) return loss;
  const other = Object.entries(loss.config ?? {}).find(([name, value]) => fixed[name] !== value);
  if (!other) return { name: loss.name };
  const [name, value] = other;
  return `${kind} servers do not let ${loss.name} choose ${name}: it is ${fixed[name] ?? "not known there"}, not ${value}`;
}

const weightsOf = (datum: Datum): Float32Array =>
  (datum.lossInputs.weights as Float32Array | undefined) ??
  new Float32Array(datum.lossInputs.target_tokens?.length ?? inputLength(datum)).fill(1);

function sum(values: Float32Array): number {
  let total = 0;
  for (let i = 0; i < values.length; i++) total += values[i] as number;
  return total;
}

/** Relative difference below which two sums of float32 weights count as one. */
const ROUNDING = 1e-5;

/** Whether the mean of means is the sum already: every datum has an equal share of a total of 1. */
function hasEqualShares(data: readonly Datum[]): boolean {
  return data.every((datum) => Math.abs(sum(weightsOf(datum)) * data.length - 1) < ROUNDING);
}

/** 1 where a weight is not 0. */
function setMask(mask: Float32Array, weights: Float32Array): void {
  for (let i = 0; i < mask.length; i++) mask[i] = weights[i] === 0 ? 0 : 1;
}

/**
 * −r·A with r = exp(ℓ − q) has the gradient −A·∇ℓ where q = ℓ, which is cross entropy's with A in the place of w. The
 * server divides by the mask's size and by the number of datums; both are put into A.
 */
function asImportanceSampling(
  data: readonly Datum[],
  logprobs: readonly Float32Array[],
): { readonly loss: Loss; readonly data: readonly Datum[] } {
  const sent = data.map((datum, i): Datum => {
    const weights = weightsOf(datum);
    const mask = new Float32Array(weights.length);
    setMask(mask, weights);
    const scale = sum(mask) * data.length;
    const lossInputs = {
      target_tokens: datum.lossInputs.target_tokens as Int32Array,
      weights: mask,
      logprobs: logprobs[i] as Float32Array,
      advantages: weights.map((weight) => weight * scale),
    };
    return { ...datum, lossInputs };
  });
  return { loss: { name: "importance_sampling" }, data: sent };
}

function foldWeights(kind: ServerKind, loss: Loss, datum: Datum, datums: number): Datum {
  const { reduction, readsRlWeights } = SERVER_TRAITS[kind];
  const weights = weightsOf(datum);
  const { length } = weights;
  // Both in one buffer: a buffer costs more than the few hundred bytes of most of them.
  const room = new Float32Array(2 * length);
  const [mask, advantages] = [room.subarray(0, length), room.subarray(length)];
  setMask(mask, weights);
  const scale = reduction === "sum" ? 1 : sum(mask) * datums;
  const plain = datum.lossInputs.advantages as Float32Array;
  for (let i = 0; i < length; i++) advantages[i] = (plain[i] as number) * (weights[i] as number) * scale;
  return { ...datum, lossInputs: { ...maskedInputs(datum, loss, readsRlWeights, mask), advantages } };
}

/** The inputs with the mask where this server looks for it. */
function maskedInputs({ lossInputs }: Datum, { name }: Loss, readsRlWeights: boolean, mask: Float32Array) {
  if (readsRlWeights) return { ...lossInputs, weights: mask };
  const { weights: _, ...others } = lossInputs;
  return name === "gspo" ? { ...others, sequence_ratio_mask: mask } : others;
}

/** With images between the tokens nobody can tell. */
function isShifted({ input, images, lossInputs }: Datum): boolean {
  const targets = lossInputs.target_tokens;
  if (images !== undefined && images.length > 0) return true;
  if (targets?.length !== input.length) return false;
  for (let i = 1; i < input.length; i++) if (input[i] !== targets[i - 1]) return false;
  return true;
}
