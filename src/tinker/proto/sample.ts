/** `SampleResponse`: what a sample gives. */
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { bytesOf, readEach, readFloat32, readInt32 } from "./bytes.ts";
import { at, type Decoded, decoding, WireFault } from "./decoded.ts";
import { readTensor, type TensorData, writeTensor } from "./tensor.ts";
import {
  type SampledSequence,
  SampledSequenceSchema,
  SampleResponseSchema,
  StopReason,
  type TopkLogprobs,
  TopkLogprobsSchema,
} from "./tinker.gen.ts";
import type { TopK } from "./topk.ts";

export interface SequenceMessage {
  readonly stopReason: "stop" | "length";
  /** [T] */
  readonly tokens: Int32Array;
  /** [T] in nats. */
  readonly logprobs?: Float32Array;
  readonly topk?: TopK;
}

export interface SampleMessage {
  readonly sequences: readonly SequenceMessage[];
  /** By prompt token; NaN where undefined. */
  readonly promptLogprobs?: Float32Array;
  readonly topkPrompt?: TopK;
  readonly promptCacheHitTokens: number;
  /** float32 [P - 1, K] */
  readonly targetPromptLogprobs?: TensorData;
  /** int64 and float32 [P - 1, K] */
  readonly promptAltTokens?: { readonly tokens: TensorData; readonly logprobs: TensorData };
}

export function encodeSampleMessage(message: SampleMessage): Uint8Array<ArrayBuffer> {
  const { sequences, promptLogprobs, topkPrompt, targetPromptLogprobs, promptAltTokens } = message;
  const wire = create(SampleResponseSchema, {
    sequences: sequences.map(writeSequence),
    promptCacheHitTokens: message.promptCacheHitTokens,
    ...(promptLogprobs ? { promptLogprobs: bytesOf(promptLogprobs) } : {}),
    ...(topkPrompt ? { topkPromptLogprobs: writeTopk(topkPrompt) } : {}),
    ...(targetPromptLogprobs ? { targetPromptLogprobs: writeTensor(targetPromptLogprobs) } : {}),
    ...(promptAltTokens
      ? {
          promptAltTokens: {
            tokens: writeTensor(promptAltTokens.tokens),
            logprobs: writeTensor(promptAltTokens.logprobs),
          },
        }
      : {}),
  });
  return toBinary(SampleResponseSchema, wire);
}

export function decodeSampleMessage(bytes: Uint8Array): Decoded<SampleMessage> {
  return decoding("SampleResponse", () => {
    const wire = fromBinary(SampleResponseSchema, bytes, { readUnknownFields: false });
    const { promptLogprobs, topkPromptLogprobs, targetPromptLogprobs, promptAltTokens } = wire;
    const { tokens, logprobs } = promptAltTokens ?? {};
    if (promptAltTokens && !(tokens && logprobs)) throw new WireFault("prompt_alt_tokens has no tokens or logprobs");
    return {
      sequences: readSequences(wire.sequences),
      promptCacheHitTokens: wire.promptCacheHitTokens,
      ...(promptLogprobs ? { promptLogprobs: at("prompt_logprobs", () => readFloat32(promptLogprobs)) } : {}),
      ...(topkPromptLogprobs ? { topkPrompt: at("topk_prompt_logprobs", () => readTopk(topkPromptLogprobs)) } : {}),
      ...(targetPromptLogprobs ? { targetPromptLogprobs: readTensor(targetPromptLogprobs) } : {}),
      ...(tokens && logprobs
        ? { promptAltTokens: { tokens: readTensor(tokens), logprobs: readTensor(logprobs) } }
        : {}),
    };
  });
}

function writeSequence({ stopReason, tokens, logprobs, topk }: SequenceMessage): SampledSequence {
  return create(SampledSequenceSchema, {
    stopReason: stopReason === "stop" ? StopReason.STOP : StopReason.LENGTH,
    tokens: bytesOf(tokens),
    ...(logprobs ? { logprobs: bytesOf(logprobs) } : {}),
    ...(topk ? { topkSampledLogprobs: writeTopk(topk) } : {}),
  });
}

function readSequences(wire: readonly SampledSequence[]): readonly SequenceMessage[] {
  const name = (i: number) => `sequences.${i}`;
  const tokens = readEach(
    Int32Array,
    wire.map((sequence) => sequence.tokens),
    name,
  );
  const logprobs = readEach(
    Float32Array,
    wire.map((sequence) => sequence.logprobs ?? NONE),
    name,
  );
  return wire.map((sequence, i) =>
    at(name(i), () =>
      sequenceOf(sequence, tokens[i] as Int32Array, sequence.logprobs && (logprobs[i] as Float32Array)),
    ),
  );
}

const NONE = new Uint8Array();

function sequenceOf(
  { stopReason, topkSampledLogprobs }: SampledSequence,
  tokens: Int32Array,
  logprobs: Float32Array | undefined,
): SequenceMessage {
  if (logprobs && logprobs.length !== tokens.length)
    throw new WireFault(`${logprobs.length} log-probabilities for ${tokens.length} tokens`);
  return {
    stopReason: stopReason === StopReason.STOP ? "stop" : "length",
    tokens,
    ...(logprobs ? { logprobs } : {}),
    ...(topkSampledLogprobs ? { topk: readTopk(topkSampledLogprobs) } : {}),
  };
}

function writeTopk({ length, k, tokens, logprobs }: TopK): TopkLogprobs {
  return create(TopkLogprobsSchema, { tokenIds: bytesOf(tokens), logprobs: bytesOf(logprobs), k, length });
}

function readTopk({ tokenIds, logprobs: values, k, length }: TopkLogprobs): TopK {
  const tokens = readInt32(tokenIds);
  const logprobs = readFloat32(values);
  if (tokens.length !== k * length || logprobs.length !== k * length) {
    throw new WireFault(`${tokens.length} tokens and ${logprobs.length} log-probabilities for [${length}, ${k}]`);
  }
  return { length, k, tokens, logprobs };
}
