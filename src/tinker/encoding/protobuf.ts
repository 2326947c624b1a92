/** The protobuf forms, between what the client holds and the messages of `proto/`. */
import type { OutputArray, PassResult, SampleResult } from "../data.ts";
import type { PassRequest } from "../encoding.ts";
import { chunksOf, inputLength, tensorShape } from "../input.ts";
import type { Decoded } from "../proto/decoded.ts";
import { encodePassMessage } from "../proto/request.ts";
import { decodePassOutput } from "../proto/result.ts";
import { decodeSampleMessage } from "../proto/sample.ts";
import { tensorOf } from "../proto/tensor.ts";
import { fullPromptLogprobs } from "./json.ts";

export function encodePassProtobuf({ modelId, seqId, data, loss, kind }: PassRequest): Uint8Array {
  return encodePassMessage({
    modelId,
    seqId,
    lossName: loss.name,
    lossConfig: loss.config ?? {},
    forwardOnly: kind === "forward",
    data: data.map((datum) => {
      const length = inputLength(datum);
      const tensors = Object.entries(datum.lossInputs).map(([name, values]) => [
        name,
        tensorOf(values, tensorShape(values.length, length)),
      ]);
      return { input: chunksOf(datum), lossInputs: Object.fromEntries(tensors) };
    }),
  });
}

/** The value, or its fault thrown: here it becomes the reason of a failed request. */
function valueOrThrow<T>(decoded: Decoded<T>): T {
  if (!decoded.ok) throw new Error(decoded.error);
  return decoded.value;
}

export function decodePassProtobuf(body: Uint8Array): PassResult {
  const { outputs, metrics } = valueOrThrow(decodePassOutput(body));
  const arrays = outputs.map((output) => {
    const named = Object.entries(output).map(([name, { data }]): [string, OutputArray] => [name, data]);
    return Object.fromEntries(named) as PassResult["outputs"][number];
  });
  return { outputs: arrays, metrics };
}

export function decodeSampleProtobuf(body: Uint8Array, promptLength: number): SampleResult {
  const { sequences, promptLogprobs, topkPrompt } = valueOrThrow(decodeSampleMessage(body));
  return {
    sequences: sequences.map(({ tokens, logprobs, stopReason, topk }) => ({
      tokens,
      logprobs: logprobs ?? new Float32Array(),
      stopReason,
      ...(topk ? { topk } : {}),
    })),
    ...(promptLogprobs ? { promptLogprobs: fullPromptLogprobs(promptLogprobs, promptLength) } : {}),
    ...(topkPrompt ? { topkPromptLogprobs: topkPrompt } : {}),
  };
}
