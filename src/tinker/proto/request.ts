/** `ForwardBackwardRequest`: the body of forward_backward, and of forward where `forwardOnly` is set. */
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { bytesOf, joinBytes, readInt32 } from "./bytes.ts";
import { at, type Decoded, decoding, WireFault } from "./decoded.ts";
import { readTensor, type TensorData, writeTensor } from "./tensor.ts";
import {
  type Chunk,
  ChunkSchema,
  type Datum,
  DatumSchema,
  type ForwardBackwardRequest,
  ForwardBackwardRequestSchema,
  type LossConfigValue,
  LossConfigValueSchema,
  type ProvenanceSpan,
  ProvenanceSpanSchema,
} from "./tinker.gen.ts";
import { isPlain, writeData } from "./write-pass.ts";

export type InputChunk =
  | { readonly type: "encoded_text"; readonly tokens: Int32Array }
  | {
      readonly type: "image";
      readonly data: Uint8Array;
      /** `png` or `jpeg`. */
      readonly format: string;
      readonly expectedTokens?: number;
      readonly dimensions?: { readonly width: number; readonly height: number };
    }
  | { readonly type: "dmel"; readonly dmel: Uint8Array };

/** Where tokens of a datum came from: a span of a prompt or of a sampled sequence. */
export interface Provenance {
  readonly of: "prompt" | "sample";
  readonly sequenceId: string;
  readonly offset: number;
  readonly length: number;
}

export interface DatumMessage {
  readonly input: readonly InputChunk[];
  readonly lossInputs: Readonly<Record<string, TensorData>>;
  readonly inputSpans?: readonly Provenance[];
  readonly lossInputSpans?: readonly Provenance[];
}

export interface PassMessage {
  readonly modelId: string;
  /** From 1; 0 means none. */
  readonly seqId: number;
  readonly lossName: string;
  /** Text is understood by servers since 0.38 only. */
  readonly lossConfig: Readonly<Record<string, number | string>>;
  readonly forwardOnly: boolean;
  readonly data: readonly DatumMessage[];
}

/** Numbers of a loss's configuration go to both maps, as the SDK does; text to the newer one only. */
export function encodePassMessage(message: PassMessage): Uint8Array<ArrayBuffer> {
  const { modelId, seqId, lossName, lossConfig, forwardOnly } = message;
  const entries = Object.entries(lossConfig);
  const before = { modelId, seqId };
  const after = {
    lossFn: lossName,
    forwardOnly,
    lossFnConfig: Object.fromEntries(entries.filter((e): e is [string, number] => typeof e[1] === "number")),
    lossFnConfigV2: Object.fromEntries(entries.map(([name, value]) => [name, configValue(value)])),
  };
  if (!message.data.every(isPlain)) return write({ ...before, ...after, data: message.data.map(writeDatum) });
  // Fields are written in the order of their numbers, and the data's lies between these.
  return joinBytes([write(before), writeData(message.data), write(after)]);
}

const write = (init: MessageInitShape<typeof ForwardBackwardRequestSchema>): Uint8Array<ArrayBuffer> =>
  toBinary(ForwardBackwardRequestSchema, create(ForwardBackwardRequestSchema, init));

function configValue(value: number | string): LossConfigValue {
  const oneof: LossConfigValue["value"] =
    typeof value === "number" ? { case: "number", value } : { case: "text", value };
  return create(LossConfigValueSchema, { value: oneof });
}

export function decodePassMessage(bytes: Uint8Array): Decoded<PassMessage> {
  return decoding("ForwardBackwardRequest", () => {
    const wire = fromBinary(ForwardBackwardRequestSchema, bytes, { readUnknownFields: false });
    return {
      modelId: wire.modelId,
      seqId: wire.seqId,
      lossName: wire.lossFn,
      lossConfig: readConfig(wire),
      forwardOnly: wire.forwardOnly,
      data: wire.data.map((datum, i) => at(`data.${i}`, () => readDatum(datum))),
    };
  });
}

function readConfig({ lossFnConfig, lossFnConfigV2 }: ForwardBackwardRequest): Record<string, number | string> {
  const newer = Object.entries(lossFnConfigV2).flatMap(([name, { value }]: [string, LossConfigValue]) =>
    value.case === undefined ? [] : [[name, value.value] as const],
  );
  return newer.length > 0 ? Object.fromEntries(newer) : { ...lossFnConfig };
}

function writeDatum({ input, lossInputs, inputSpans, lossInputSpans }: DatumMessage): Datum {
  return create(DatumSchema, {
    modelInput: input.map(writeChunk),
    lossFnInputs: Object.fromEntries(Object.entries(lossInputs).map(([name, tensor]) => [name, writeTensor(tensor)])),
    modelInputSpans: (inputSpans ?? []).map(writeSpan),
    lossFnInputSpans: (lossInputSpans ?? []).map(writeSpan),
  });
}

function readDatum({ modelInput, lossFnInputs, modelInputSpans, lossFnInputSpans }: Datum): DatumMessage {
  const tensors = Object.entries(lossFnInputs).map(
    ([name, tensor]) => [name, at(`loss_fn_inputs.${name}`, () => readTensor(tensor))] as const,
  );
  return {
    input: modelInput.map((chunk, i) => at(`model_input.${i}`, () => readChunk(chunk))),
    lossInputs: Object.fromEntries(tensors),
    ...(modelInputSpans.length > 0 ? { inputSpans: modelInputSpans.map(readSpan) } : {}),
    ...(lossFnInputSpans.length > 0 ? { lossInputSpans: lossFnInputSpans.map(readSpan) } : {}),
  };
}

function writeChunk(chunk: InputChunk): Chunk {
  switch (chunk.type) {
    case "encoded_text":
      return create(ChunkSchema, { chunk: { case: "encodedText", value: { tokens: bytesOf(chunk.tokens) } } });
    case "image": {
      const { data, format, expectedTokens, dimensions } = chunk;
      const value = {
        data,
        format,
        ...(expectedTokens === undefined ? {} : { expectedTokens }),
        ...(dimensions === undefined ? {} : { overrideDimensions: dimensions }),
      };
      return create(ChunkSchema, { chunk: { case: "image", value } });
    }
    case "dmel":
      return create(ChunkSchema, { chunk: { case: "dmel", value: { dmel: chunk.dmel } } });
    default:
      return chunk satisfies never;
  }
}

function readChunk({ chunk }: Chunk): InputChunk {
  switch (chunk.case) {
    case "encodedText":
      return { type: "encoded_text", tokens: readInt32(chunk.value.tokens) };
    case "image": {
      const { data, format, expectedTokens, overrideDimensions } = chunk.value;
      return {
        type: "image",
        data,
        format,
        ...(expectedTokens === undefined ? {} : { expectedTokens }),
        ...(overrideDimensions
          ? { dimensions: { width: overrideDimensions.width, height: overrideDimensions.height } }
          : {}),
      };
    }
    case "dmel":
      return { type: "dmel", dmel: chunk.value.dmel };
    default:
      throw new WireFault("a chunk is of no known type");
  }
}

function writeSpan({ of, sequenceId, offset, length }: Provenance): ProvenanceSpan {
  const value = { sequenceId, offset: BigInt(offset), length: BigInt(length) };
  return create(ProvenanceSpanSchema, {
    span: of === "prompt" ? { case: "promptTokens", value } : { case: "sampledTokens", value },
  });
}

function readSpan({ span }: ProvenanceSpan): Provenance {
  if (span.case === undefined) throw new WireFault("a provenance span is of no known type");
  const { sequenceId, offset, length } = span.value;
  const of = span.case === "promptTokens" ? "prompt" : "sample";
  return { of, sequenceId, offset: Number(offset), length: Number(length) };
}
