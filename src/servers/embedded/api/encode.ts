/** Results of futures as JSON, in the protocol's shapes. */

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

function encodePass({ rows, lossSum }: PassResult): unknown {
  const tokens = rows.reduce((sum, { logprobs }) => sum + logprobs.length, 0);
  return {
    loss_fn_output_type: "scalar",
    loss_fn_outputs: rows.map(({ logprobs, elementwiseLoss }) => ({
      logprobs: encodeFloats(logprobs),
      elementwise_loss: encodeFloats(elementwiseLoss),
    })),
    // Exactly one colon in each key: the SDK reduces over chunks by what follows it.
    metrics: { "loss:sum": lossSum, "num_tokens:sum": tokens },
  };
}

function encodeFloats(values: Float32Array): unknown {
  return { data: Array.from(values), dtype: "float32", shape: [values.length] };
}

function encodeSample({ sequences, promptLogprobs, topkPromptLogprobs }: SampleResult): unknown {
  return {
    type: "sample",
    sequences: sequences.map(({ tokens, logprobs, stopReason }) => ({ stop_reason: stopReason, tokens, logprobs })),
    prompt_logprobs: promptLogprobs,
    topk_prompt_logprobs: topkPromptLogprobs,
    prompt_cache_hit_tokens: 0,
  };
}
