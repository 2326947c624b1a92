/** Results of futures as JSON, in the protocol's shapes. */

import type { Matrix } from "../prompt.ts";
import type { SampleResult } from "../sampler.ts";
import type { PassResult } from "../trainer.ts";
import type { Outcome } from "./futures.ts";

export function encodeOutcome(outcome: Outcome): unknown {
  if (!outcome.ok) return { error: outcome.error, category: outcome.category };
  switch (outcome.result.type) {
    case "pass":
      return encodePass(outcome.result.pass);
    case "sample":
      return encodeSample(outcome.result.sample);
    case "json":
      return outcome.result.body;
    default:
      return outcome.result satisfies never;
  }
}

function encodePass(pass: PassResult): unknown {
  return {
    loss_fn_output_type: "scalar",
    loss_fn_outputs: pass.rows.map(({ outputs, elementwiseLoss, width }) => ({
      [pass.output]: encodeFloats(outputs, width),
      elementwise_loss: encodeFloats(elementwiseLoss, width),
    })),
    metrics: passMetrics(pass),
  };
}

/** Exactly one colon in each key: the SDK reduces over chunks by what follows it. */
export function passMetrics({ output, rows, lossSum }: PassResult): Readonly<Record<string, number>> {
  const tokens = rows.reduce((sum, { outputs }) => sum + outputs.length, 0);
  const critic = output === "values" ? { "critic_loss:sum": lossSum } : {};
  return { "loss:sum": lossSum, ...critic, "num_tokens:sum": tokens };
}

function encodeFloats(values: Float32Array, width: number): unknown {
  return { data: Array.from(values), dtype: "float32", shape: rowShape(values.length, width) };
}

/** [N] or, with several targets a position, [N, width]. */
export function rowShape(count: number, width: number): number[] {
  return width === 1 ? [count] : [count / width, width];
}

function encodeSample({ sequences, prompt }: SampleResult): unknown {
  const { logprobs, topk, targets, draws } = prompt;
  return {
    type: "sample",
    sequences: sequences.map((sequence) => ({
      stop_reason: sequence.stopReason,
      tokens: sequence.tokens,
      logprobs: sequence.logprobs,
      ...(sequence.topk ? { topk_logprobs: sequence.topk } : {}),
    })),
    prompt_logprobs: logprobs,
    topk_prompt_logprobs: topk,
    ...(targets ? { target_prompt_logprobs: encodeMatrix(targets, "float32") } : {}),
    ...(draws
      ? {
          prompt_alt_tokens: {
            tokens: encodeMatrix(draws.tokens, "int64"),
            logprobs: encodeMatrix(draws.logprobs, "float32"),
          },
        }
      : {}),
    prompt_cache_hit_tokens: 0,
  };
}

function encodeMatrix({ width, values }: Matrix<Int32Array | Float32Array>, dtype: "int64" | "float32"): unknown {
  return { data: Array.from(values), dtype, shape: [values.length / Math.max(width, 1), width] };
}
