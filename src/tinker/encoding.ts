/**
 * How training data and results cross the wire. One interface, so that the JSON here and protobuf can stand beside
 * each other: transport and futures see only bytes and a content type. Encoding is deterministic: the same request
 * gives the same bytes in any process, which is what makes a resubmission recognisable.
 */
import type { Datum, Loss, PassResult, SampleResult } from "./data.ts";
import type { WireDatum, WireInput, WirePass, WirePassResult, WireSample, WireTensor } from "./wire.ts";

export interface PassRequest {
  readonly modelId: string;
  readonly seqId: number;
  readonly data: readonly Datum[];
  readonly loss: Loss;
  readonly kind: "forward" | "forward_backward";
}

export interface Encoding {
  readonly contentType: string;
  /** Where the body goes, and its bytes. */
  encodePass(request: PassRequest): { readonly path: string; readonly body: Uint8Array };
  decodePass(body: Uint8Array): PassResult;
  decodeSample(body: Uint8Array, promptLength: number): SampleResult;
}

export function wireTensor(values: Int32Array | Float32Array): WireTensor {
  return {
    data: Array.from(values),
    dtype: values instanceof Int32Array ? "int64" : "float32",
    shape: [values.length],
  };
}

export function wireInput(tokens: Int32Array): WireInput {
  return { chunks: [{ type: "encoded_text", tokens: Array.from(tokens) }] };
}

const wireDatum = ({ input, lossInputs }: Datum): WireDatum => ({
  model_input: wireInput(input),
  loss_fn_inputs: Object.fromEntries(Object.entries(lossInputs).map(([name, values]) => [name, wireTensor(values)])),
});

/** A number that JSON could not carry arrives as null. */
const floats = (data: readonly (number | null)[]) => Float32Array.from(data, (value) => value ?? Number.NaN);

export function encodeJson(value: unknown): Uint8Array {
  return Buffer.from(JSON.stringify(value));
}

export const jsonEncoding: Encoding = {
  contentType: "application/json",
  encodePass({ modelId, seqId, data, loss, kind }) {
    const pass: WirePass = { loss_fn: loss.name, loss_fn_config: loss.config ?? null, data: data.map(wireDatum) };
    return { path: `/${kind}`, body: encodeJson({ model_id: modelId, seq_id: seqId, [`${kind}_input`]: pass }) };
  },
  decodePass(body) {
    const { loss_fn_outputs, metrics } = JSON.parse(Buffer.from(body).toString()) as WirePassResult;
    return {
      outputs: loss_fn_outputs.map((output) =>
        Object.fromEntries(Object.entries(output).map(([name, { data }]) => [name, floats(data)])),
      ),
      metrics: metrics ?? {},
    };
  },
  decodeSample(body, promptLength) {
    const { sequences, prompt_logprobs } = JSON.parse(Buffer.from(body).toString()) as WireSample;
    return {
      sequences: sequences.map(({ tokens, logprobs, stop_reason }) => ({
        tokens: Int32Array.from(tokens),
        logprobs: floats(logprobs ?? []),
        stopReason: stop_reason === "stop" ? "stop" : "length",
      })),
      ...(prompt_logprobs ? { promptLogprobs: promptLogprobs(prompt_logprobs, promptLength) } : {}),
    };
  },
};

/** One entry a prompt token, the first undefined; SkyRL's jax backend leaves that first one out. */
export function promptLogprobs(values: readonly (number | null)[], promptLength: number): Float32Array {
  return floats(values.length === promptLength - 1 ? [null, ...values] : values);
}
