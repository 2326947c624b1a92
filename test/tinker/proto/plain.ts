/** Decoded messages in the notation of the fixtures, which is the SDK's. */
import type { Decoded } from "../../../src/tinker/proto/decoded.ts";
import type { InputChunk, PassMessage, Provenance } from "../../../src/tinker/proto/request.ts";
import type { PassOutput } from "../../../src/tinker/proto/result.ts";
import type { SampleMessage } from "../../../src/tinker/proto/sample.ts";
import type { TensorData } from "../../../src/tinker/proto/tensor.ts";
import { type TopK, topkRow } from "../../../src/tinker/proto/topk.ts";

export function decodedValue<T>(decoded: Decoded<T>): T {
  if (!decoded.ok) throw new Error(decoded.error);
  return decoded.value;
}

export const plainTensor = ({ dtype, shape, data }: TensorData) => ({ dtype, shape, data: [...data] });
const tensors = (named: Readonly<Record<string, TensorData>>) =>
  Object.fromEntries(Object.entries(named).map(([name, tensor]) => [name, plainTensor(tensor)]));
const numbers = (values: Float32Array | undefined) =>
  values ? [...values].map((v) => (Number.isNaN(v) ? null : v)) : null;

const plainChunk = (chunk: InputChunk) => {
  if (chunk.type === "encoded_text") return { type: chunk.type, tokens: [...chunk.tokens] };
  if (chunk.type === "dmel") return { type: chunk.type, dmel_hex: Buffer.from(chunk.dmel).toString("hex") };
  const { type, data, format, expectedTokens } = chunk;
  return { type, data_hex: Buffer.from(data).toString("hex"), format, expected_tokens: expectedTokens };
};
const plainSpan = ({ of, sequenceId, offset, length }: Provenance) => ({
  [of === "prompt" ? "prompt_tokens" : "sampled_tokens"]: { sequence_id: sequenceId, offset, length },
});

/** Both maps of the configuration, of which the decoder gives the newer one: the older is what of it are numbers. */
export const plainPass = (message: PassMessage) => ({
  model_id: message.modelId,
  seq_id: message.seqId,
  loss_fn: message.lossName,
  forward_only: message.forwardOnly,
  loss_fn_config: Object.fromEntries(Object.entries(message.lossConfig).filter(([, v]) => typeof v === "number")),
  loss_fn_config_v2: message.lossConfig,
  data: message.data.map(({ input, lossInputs, inputSpans, lossInputSpans }) => ({
    model_input: input.map(plainChunk),
    loss_fn_inputs: tensors(lossInputs),
    ...(inputSpans ? { model_input_spans: inputSpans.map(plainSpan) } : {}),
    ...(lossInputSpans ? { loss_fn_input_spans: lossInputSpans.map(plainSpan) } : {}),
  })),
});

export const plainPassOutput = ({ outputType, outputs, metrics }: PassOutput) => ({
  loss_fn_output_type: outputType,
  metrics,
  loss_fn_outputs: outputs.map(tensors),
});

const plainTopk = (topk: TopK | undefined) =>
  topk
    ? Array.from({ length: topk.length }, (_, i) => {
        const row = topkRow(topk, i);
        return row ? [...row.tokens].map((token, j) => [token, row.logprobs[j]]) : null;
      })
    : null;

/** Fields that the fixture does not mention are left out where they are empty. */
export const plainSample = (expected: any) => (message: SampleMessage) => ({
  prompt_cache_hit_tokens: message.promptCacheHitTokens,
  prompt_logprobs: numbers(message.promptLogprobs),
  topk_prompt_logprobs: plainTopk(message.topkPrompt),
  sequences: message.sequences.map(({ stopReason, tokens, logprobs, topk }, i) => ({
    stop_reason: stopReason,
    tokens: [...tokens],
    logprobs: numbers(logprobs),
    ...(topk || "topk_logprobs" in expected.sequences[i] ? { topk_logprobs: plainTopk(topk) } : {}),
  })),
  ...(message.targetPromptLogprobs ? { target_prompt_logprobs: plainTensor(message.targetPromptLogprobs) } : {}),
  ...(message.promptAltTokens
    ? {
        prompt_alt_tokens: {
          tokens: plainTensor(message.promptAltTokens.tokens),
          logprobs: plainTensor(message.promptAltTokens.logprobs),
        },
      }
    : {}),
});
