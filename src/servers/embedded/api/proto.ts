/** Protobuf bodies and results, through the codecs that the client has too. */
import { decodePassMessage, type InputChunk, type PassMessage } from "../../../tinker/proto/request.ts";
import { encodePassOutput } from "../../../tinker/proto/result.ts";
import { encodeSampleMessage } from "../../../tinker/proto/sample.ts";
import { type TensorData, tensorOf } from "../../../tinker/proto/tensor.ts";
import { topkOf } from "../../../tinker/proto/topk.ts";
import type { Matrix, PromptScores } from "../prompt.ts";
import type { SampledSequence, SampleResult } from "../sampler.ts";
import type { PassResult } from "../trainer.ts";
import { passMetrics, rowShape } from "./encode.ts";
import { HttpError, invalid } from "./errors.ts";
import type { FutureResult } from "./futures.ts";
import type { SentPass, SentTensor } from "./pass.ts";
import { densify } from "./sparse.ts";

export interface SentMessage extends Pick<PassMessage, "modelId" | "seqId" | "forwardOnly"> {
  /** Throws HttpError 422 where a part of it is not for this server. */
  readonly readPass: () => SentPass;
}

/** Throws HttpError 422 where the bytes are no request. */
export function readPassProtobuf(bytes: Uint8Array): SentMessage {
  const decoded = decodePassMessage(bytes);
  if (!decoded.ok) throw new HttpError(422, [{ type: "protobuf_invalid", loc: ["body"], msg: decoded.error }]);
  const { modelId, seqId, forwardOnly, lossName, lossConfig, data } = decoded.value;
  if (seqId < 0) invalid(["seq_id"], "Input should be a whole number of at least 0", seqId);
  const readPass = (): SentPass => ({
    loss: lossName,
    config: lossConfig,
    data: data.map(({ input, lossInputs }, i) => ({
      tokens: readTokens(input, i),
      tensors: Object.fromEntries(Object.entries(lossInputs).map(([name, tensor]) => [name, readTensor(tensor)])),
    })),
    loc: [],
  });
  return { modelId, seqId, forwardOnly, readPass };
}

function readTokens(input: readonly InputChunk[], index: number): Int32Array {
  const parts = input.map((chunk, i) =>
    chunk.type === "encoded_text"
      ? chunk.tokens
      : invalid(["data", index, "model_input", i], "The embedded server takes encoded_text chunks only", chunk.type),
  );
  const tokens = new Int32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    tokens.set(part, at);
    at += part.length;
  }
  return tokens;
}

/** The codec has checked the indices. */
function readTensor({ dtype, shape, data, sparse }: TensorData): SentTensor {
  if (sparse === undefined) return { values: data, dtype, shape };
  try {
    return { values: densify({ values: data, rows: sparse.crow, columns: sparse.col, shape }), dtype, shape };
  } catch (error) {
    throw new HttpError(422, (error as Error).message);
  }
}

/** The result as protobuf; undefined for those that are JSON only. */
export function encodeProtobuf(result: FutureResult): Uint8Array | undefined {
  switch (result.type) {
    case "pass":
      return encodePass(result.pass);
    case "sample":
      return encodeSample(result.sample);
    case "json":
      return undefined;
    default:
      return result satisfies never;
  }
}

function encodePass(pass: PassResult): Uint8Array {
  return encodePassOutput({
    outputType: "ArrayRecord",
    outputs: pass.rows.map(({ outputs, elementwiseLoss, width }) => ({
      [pass.output]: tensorOf(outputs, rowShape(outputs.length, width)),
      elementwise_loss: tensorOf(elementwiseLoss, rowShape(outputs.length, width)),
    })),
    metrics: passMetrics(pass),
  });
}

function encodeSample({ sequences, prompt }: SampleResult): Uint8Array {
  return encodeSampleMessage({
    sequences: sequences.map(encodeSequence),
    promptCacheHitTokens: 0,
    ...encodePrompt(prompt),
  });
}

function encodeSequence({ tokens, logprobs, topk, stopReason }: SampledSequence) {
  return {
    stopReason,
    tokens: Int32Array.from(tokens),
    logprobs: Float32Array.from(logprobs),
    ...(topk ? { topk: topkOf(topk) } : {}),
  };
}

function encodePrompt({ logprobs, topk, targets, draws }: PromptScores) {
  return {
    ...(logprobs ? { promptLogprobs: Float32Array.from(logprobs, (value) => value ?? Number.NaN) } : {}),
    ...(topk ? { topkPrompt: topkOf(topk) } : {}),
    ...(targets ? { targetPromptLogprobs: matrixOf(targets) } : {}),
    ...(draws ? { promptAltTokens: { tokens: matrixOf(draws.tokens), logprobs: matrixOf(draws.logprobs) } } : {}),
  };
}

function matrixOf({ width, values }: Matrix<Int32Array | Float32Array>): TensorData {
  return tensorOf(values, [values.length / Math.max(width, 1), width]);
}
