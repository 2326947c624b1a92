/**
 * How the gradient of a step is got from a server. The loop says what the loss is, as data whose plain sum it is; here it
 * becomes requests: one forward_backward where the server has the loss (fused), or a forward pass first and then a
 * forward_backward of a linear loss with the same gradient (two passes).
 */
import { lossNamed } from "../losses/registry.ts";
import type { LossStrategy } from "../run-record.ts";
import type { Datum, Loss, PassResult } from "../tinker/data.ts";
import type { Pending } from "../tinker/future.ts";
import type { TrainingModel } from "../tinker/model.ts";
import { planStep } from "../tinker/quirks/reduction.ts";
import type { ServerKind } from "../tinker/quirks.ts";
import { WORK_LIMIT_MS } from "./run.ts";

interface Sendable {
  readonly loss: Loss;
  readonly data: readonly Datum[];
}

/** The requests of a step, or why it cannot be. */
export type GradientPlan =
  | ({ readonly type: "fused" } & Sendable)
  | {
      readonly type: "two_pass";
      /** For the forward pass. */
      readonly first: Sendable;
      /** The linear step from its log-probabilities, [N] a datum. */
      readonly from: (logprobs: readonly Float32Array[]) => Sendable;
    }
  | { readonly type: "refused"; readonly reason: string };

export type Gradient = Exclude<GradientPlan, { type: "refused" }>;

/** `data` is all of the step: every datum that is sent until the next optim_step. */
export function planGradient(
  kind: ServerKind,
  loss: Loss,
  data: readonly Datum[],
  strategy: LossStrategy = "fused",
): GradientPlan {
  const plan = planStep(kind, loss, data);
  if (strategy === "two_pass" && loss.name !== "cross_entropy") return inTwoPasses(kind, loss, data);
  if (plan.type === "send") return { type: "fused", loss: plan.loss, data: plan.data };
  if (plan.type === "forward first") return { type: "two_pass", first: { loss, data }, from: plan.from };
  return strategy === "auto" ? inTwoPasses(kind, loss, data) : plan;
}

/**
 * Every loss reaches the model through one number a position, its log-probability ℓ. So its gradient is that of
 * Σ d·ℓ with d = ∂loss/∂ℓ held fixed, which is cross entropy (−Σ w·ℓ) with w = −d.
 */
function inTwoPasses(kind: ServerKind, loss: Loss, data: readonly Datum[]): GradientPlan {
  const definition = lossNamed(loss.name);
  if (definition?.of !== "policy") return { type: "refused", reason: `${loss.name} has no two-pass form` };
  const missing = missingOption(loss);
  if (missing !== undefined) {
    const reason = `${missing} of ${loss.name} has no default that all servers share, so two passes need it written`;
    return { type: "refused", reason };
  }
  // As a server would be sent it whose reduction is the plain sum: weights are a mask then, the rest is in the advantages.
  const folded = planStep("embedded", loss, data);
  if (folded.type !== "send") return { type: "refused", reason: `${loss.name} has no two-pass form` };
  const first = { loss: { name: "cross_entropy" }, data: folded.data.map(scored) };
  const from = (logprobs: readonly Float32Array[]): Sendable => {
    const linear = folded.data.map((datum, i): Datum => {
      const { derivatives } = definition.evaluate({
        outputs: logprobs[i] as Float32Array,
        tensors: datum.lossInputs,
        options: optionsOf(loss),
      });
      return withWeights(
        datum,
        Float32Array.from(derivatives, (d) => -d),
      );
    });
    const plan = planStep(kind, { name: "cross_entropy" }, linear);
    if (plan.type === "send") return plan;
    if (plan.type === "forward first") return plan.from(logprobs);
    throw new RangeError(plan.reason);
  };
  const faulty = planStep(kind, { name: "cross_entropy" }, first.data);
  return faulty.type === "refused" ? faulty : { type: "two_pass", first, from };
}

/** An option that is neither written nor has a default: "as the server has it", which only the server knows. */
export function missingOption(loss: Loss): string | undefined {
  const options = optionsOf(loss);
  return lossNamed(loss.name)?.options.find(({ name }) => options[name] === undefined)?.name;
}

/** Every option of a loss, defaults included. */
export function optionsOf({ name, config = {} }: Loss): Record<string, number> {
  const options: Record<string, number> = {};
  for (const option of lossNamed(name)?.options ?? []) {
    const value = config[option.name] ?? option.default;
    if (typeof value === "number") options[option.name] = value;
  }
  return options;
}

/** A datum of which only log-probabilities are wanted. */
function scored(datum: Datum): Datum {
  return withWeights(datum, new Float32Array(datum.input.length).fill(1));
}

function withWeights({ input, lossInputs }: Datum, weights: Float32Array): Datum {
  return { input, lossInputs: { target_tokens: lossInputs.target_tokens as Int32Array, weights } };
}

/** How many numbers of the model each part of a step takes. */
export interface RequestCounts {
  readonly forward: number;
  readonly backward: number;
}

/** Sizes alone decide, so log-probabilities may be missing. */
export async function requestCounts(model: TrainingModel, gradient: Gradient): Promise<RequestCounts> {
  if (gradient.type === "fused") return { forward: 0, backward: await model.requestsFor(gradient.data) };
  const { first, from } = gradient;
  const { data } = from(first.data.map(({ input }) => new Float32Array(input.length)));
  return { forward: await model.requestsFor(first.data), backward: await model.requestsFor(data) };
}

export interface SentGradient {
  readonly pass: Pending<PassResult>;
  /** Milliseconds that the forward pass before it took; 0 for fused ones. */
  readonly forwardMs: number;
}

/** Sends a step under the numbers that were reserved for it; resolves when the server has taken it. */
export async function sendGradient(
  model: TrainingModel,
  gradient: Gradient,
  seqIds: readonly number[],
): Promise<SentGradient> {
  if (gradient.type === "fused") {
    return { pass: await model.forwardBackward(gradient.data, gradient.loss, { seqIds }), forwardMs: 0 };
  }
  const { first, from } = gradient;
  const count = await model.requestsFor(first.data);
  const begun = performance.now();
  const forward = await model.forward(first.data, first.loss, { seqIds: seqIds.slice(0, count) });
  const { outputs } = await forward.result({ deadlineMs: WORK_LIMIT_MS });
  const forwardMs = performance.now() - begun;
  const { data, loss } = from(outputs.map(({ logprobs }) => logprobs as Float32Array));
  return { pass: await model.forwardBackward(data, loss, { seqIds: seqIds.slice(count) }), forwardMs };
}
