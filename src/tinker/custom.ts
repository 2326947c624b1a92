/**
 * Losses that the client computes. With ℓ from a forward pass and the derivatives ∂C/∂ℓ from the caller, cross entropy with the
 * weights −∂C/∂ℓ has the gradient of C: Σ −w·∇ℓ = Σ ∂C/∂ℓ·∇ℓ (protocol document, 5.2). Where a server averages, the
 * step is put so that it means the same there (`quirks/reduction.ts`).
 */
import type { TinkerClient } from "./client.ts";
import type { Datum, PassResult } from "./data.ts";
import { TinkerError } from "./errors.ts";
import type { Pending, ResultOptions } from "./future.ts";
import type { TrainingModel } from "./model.ts";
import { serverKind } from "./quirks/probe.ts";
import { planStep } from "./quirks/reduction.ts";

export interface CustomLossValue {
  readonly loss: number;
  /** By datum, [N]: the loss's derivative by each log-probability. */
  readonly derivatives: readonly Float32Array[];
}

/** From log p(target) in nats, by datum, [N]. */
export type CustomLoss = (
  logprobs: readonly Float32Array[],
  data: readonly Datum[],
) => CustomLossValue | Promise<CustomLossValue>;

export interface CustomPass {
  readonly loss: number;
  /** Of the forward pass. */
  readonly logprobs: readonly Float32Array[];
  /** The backward pass, which the server has taken. */
  readonly pass: Pending<PassResult>;
}

const CROSS_ENTROPY = { name: "cross_entropy" };

/** Throws RangeError where the loss gives something else than a derivative for each log-probability. */
export async function runCustomLoss(
  client: TinkerClient,
  model: TrainingModel,
  data: readonly Datum[],
  loss: CustomLoss,
  options: ResultOptions,
): Promise<CustomPass> {
  const kind = await serverKind(client, model, options);
  const targets = data.map(({ lossInputs, ...rest }): Datum => {
    const { target_tokens } = lossInputs;
    if (!target_tokens) throw new RangeError("a datum has no target_tokens");
    return { ...rest, lossInputs: { target_tokens, weights: new Float32Array(target_tokens.length).fill(1) } };
  });
  const forward = await (await model.forward(targets, CROSS_ENTROPY, options)).result(options);
  const logprobs = forward.outputs.map((output) => output.logprobs ?? new Float32Array());
  const value = await loss(logprobs, data);
  checkDerivatives(value, logprobs);
  const weighted = targets.map((datum, i): Datum => {
    const weights = (value.derivatives[i] as Float32Array).map((derivative) => -derivative);
    return { ...datum, lossInputs: { ...datum.lossInputs, weights } };
  });
  const plan = planStep(kind, CROSS_ENTROPY, weighted);
  if (plan.type === "refused")
    throw new TinkerError({ kind: "rejected", endpoint: "POST /api/v1/forward_backward", reason: plan.reason });
  const step = plan.type === "send" ? plan : plan.from(logprobs);
  const pass = await model.forwardBackward(step.data, step.loss, options);
  return { loss: value.loss, logprobs, pass };
}

function checkDerivatives({ derivatives }: CustomLossValue, logprobs: readonly Float32Array[]): void {
  if (derivatives.length !== logprobs.length)
    throw new RangeError(`the loss gave derivatives for ${derivatives.length} data of ${logprobs.length}`);
  logprobs.forEach((row, i) => {
    const own = derivatives[i] as Float32Array;
    if (own.length !== row.length)
      throw new RangeError(`datum ${i}: the loss gave ${own.length} derivatives for ${row.length} log-probabilities`);
  });
}
