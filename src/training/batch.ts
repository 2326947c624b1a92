/**
 * A batch: the shift between input and target, and weights scaled so that the plain sum of the loss is the mean that
 * `normalize` asks for. What is sent for it depends on the server (`tinker/quirks/reduction.ts`).
 */
import { createHash } from "node:crypto";
import type { Digest } from "../digest.ts";
import { crossEntropyLoss } from "../losses/cross-entropy.ts";
import type { SupervisedSettings, TrainingSettings } from "../run-record.ts";
import type { Datum, Loss, PassResult } from "../tinker/data.ts";
import { bytesOf, joinBytes } from "../tinker/proto/bytes.ts";
import type { TokenDatum } from "../tokens/conversation.ts";

export interface Batch {
  readonly data: readonly Datum[];
  /** Of tokens and weights: what a resumed step must still be. */
  readonly digest: Digest;
  /** Input tokens. */
  readonly tokens: number;
  /** Positions with a weight. */
  readonly trainedTokens: number;
}

const sum = (values: Float32Array): number => values.reduce((a, b) => a + b, 0);

/**
 * `token`: every weight is divided by the sum of all weights of the batch. `sequence`: by the sum over its own datum and
 * the number of datums, where a datum of a weighted conversation counts as its factor.
 */
export function buildBatch(datums: readonly TokenDatum[], normalize: SupervisedSettings["normalize"]): Batch {
  const total = datums.reduce((t, d) => t + sum(d.weights.subarray(1)), 0);
  const factors = datums.reduce((f, d) => f + (d.factor ?? 1), 0);
  const data = datums.map(({ tokens, weights, factor = 1 }): Datum => {
    const own = weights.slice(1);
    const divisor = normalize === "token" ? total : (sum(own) * factors) / factor;
    return {
      input: tokens.slice(0, -1),
      lossInputs: { target_tokens: tokens.slice(1), weights: own.map((w) => w / divisor) },
    };
  });
  return {
    data,
    digest: digestData(data),
    tokens: data.reduce((n, d) => n + d.input.length, 0),
    trainedTokens: data.reduce((n, d) => n + weightsOf(d).reduce((k, w) => k + (w === 0 ? 0 : 1), 0), 0),
  };
}

const weightsOf = (datum: Datum): Float32Array => datum.lossInputs.weights as Float32Array;

/** The batch's loss in nats, as `normalize` says, from the log-probabilities that came back. */
export function batchLoss(data: readonly Datum[], results: readonly PassResult[]): number {
  const outputs = results.flatMap((r) => r.outputs);
  return data.reduce((total, datum, i) => {
    const logprobs = outputs[i]?.logprobs;
    return total + (logprobs ? crossEntropyLoss(weightsOf(datum), logprobs) : Number.NaN);
  }, 0);
}

/** Of all that is sent: what a resumed step must still be. */
export function digestData(data: readonly Datum[]): Digest {
  const hash = createHash("sha256");
  for (const { input, lossInputs } of data) {
    hash.update(`${input.length};`);
    // Of one datum at once: they are short, and a call costs more than their bytes.
    hash.update(joinBytes([input, ...Object.values(lossInputs)].map(bytesOf)));
  }
  return `sha256:${hash.digest("hex")}`;
}

/** A loss as the client sends it; servers check the keys of a configuration, so an empty one is left out. */
export function wireLoss({ type, options }: TrainingSettings["loss"]): Loss {
  return Object.keys(options).length > 0 ? { name: type, config: options } : { name: type };
}
