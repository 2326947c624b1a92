/** The JSON forms, which every server takes. */
import type { Datum, OutputArray, PassResult, SampleResult } from "../data.ts";
import type { PassRequest } from "../encoding.ts";
import { chunksOf, inputLength, type ModelInput, tensorShape } from "../input.ts";
import type { InputChunk } from "../proto/request.ts";
import { topkOf } from "../proto/topk.ts";
import type { WireDatum, WireInput, WirePass, WirePassResult, WireSample, WireTensor } from "../wire.ts";

export function encodeJson(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

export function wireInput(input: ModelInput): WireInput {
  return { chunks: chunksOf(input).map(wireChunk) };
}

function wireChunk(chunk: InputChunk): WireInput["chunks"][number] {
  switch (chunk.type) {
    case "encoded_text":
      return { type: "encoded_text", tokens: Array.from(chunk.tokens) };
    case "image": {
      const { data, format, expectedTokens } = chunk;
      const base64 = Buffer.from(data).toString("base64");
      return { type: "image", data: base64, format, expected_tokens: expectedTokens ?? null };
    }
    case "dmel":
      return { type: "dmel", dmel: Buffer.from(chunk.dmel).toString("base64") };
    default:
      return chunk satisfies never;
  }
}

function wireTensor(values: Int32Array | Float32Array, length: number): WireTensor {
  return {
    data: Array.from(values),
    dtype: values instanceof Int32Array ? "int64" : "float32",
    shape: tensorShape(values.length, length),
  };
}

const wireDatum = (datum: Datum): WireDatum => {
  const length = inputLength(datum);
  const tensors = Object.entries(datum.lossInputs).map(([name, values]) => [name, wireTensor(values, length)]);
  return { model_input: wireInput(datum), loss_fn_inputs: Object.fromEntries(tensors) };
};

export function encodePassJson({ modelId, seqId, data, loss, kind }: PassRequest): Uint8Array {
  const pass: WirePass = { loss_fn: loss.name, loss_fn_config: loss.config ?? null, data: data.map(wireDatum) };
  // As in protobuf, 0 means none.
  const seq = seqId === 0 ? {} : { seq_id: seqId };
  return encodeJson({ model_id: modelId, ...seq, [`${kind}_input`]: pass });
}

/** A number that JSON could not carry arrives as null. */
const floats = (data: readonly (number | null)[]) => Float32Array.from(data, (value) => value ?? Number.NaN);

function readTensor({ data, dtype }: WireTensor): OutputArray {
  if (dtype !== "int64") return floats(data);
  const isNarrow = data.every((value) => value === ((value ?? 0) | 0));
  const values = data as readonly number[];
  return isNarrow ? Int32Array.from(values) : Float64Array.from(values);
}

export function decodePassJson(body: Uint8Array): PassResult {
  const { loss_fn_outputs, metrics } = JSON.parse(Buffer.from(body).toString()) as WirePassResult;
  return {
    outputs: loss_fn_outputs.map(
      (output) =>
        Object.fromEntries(
          Object.entries(output).map(([name, tensor]) => [name, readTensor(tensor)]),
        ) as PassResult["outputs"][number],
    ),
    metrics: metrics ?? {},
  };
}

export function decodeSampleJson(body: Uint8Array, promptLength: number): SampleResult {
  const wire = JSON.parse(Buffer.from(body).toString()) as WireSample;
  const { sequences, prompt_logprobs, topk_prompt_logprobs } = wire;
  return {
    sequences: sequences.map(({ tokens, logprobs, stop_reason }) => ({
      tokens: Int32Array.from(tokens),
      logprobs: floats(logprobs ?? []),
      stopReason: stop_reason === "stop" ? "stop" : "length",
    })),
    ...(prompt_logprobs ? { promptLogprobs: fullPromptLogprobs(floats(prompt_logprobs), promptLength) } : {}),
    ...(topk_prompt_logprobs ? { topkPromptLogprobs: topkOf(topk_prompt_logprobs) } : {}),
  };
}

/** One entry a prompt token, the first undefined; SkyRL's jax backend leaves that first one out. */
export function fullPromptLogprobs(values: Float32Array, promptLength: number): Float32Array {
  return values.length === promptLength - 1 ? Float32Array.of(Number.NaN, ...values) : values;
}
