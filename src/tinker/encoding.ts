/**
 * How training data and results cross the wire. Requests are written in one of two encodings, results are read by the
 * content type they come with: transport and futures see only bytes. Writing is deterministic: the same request gives
 * the same bytes in any process, which is what makes a resubmission recognisable.
 */

import type { HttpAnswer } from "./answer.ts";
import type { Datum, Loss, PassResult, SampleResult } from "./data.ts";
import { decodePassJson, decodeSampleJson, encodePassJson } from "./encoding/json.ts";
import { decodePassProtobuf, decodeSampleProtobuf, encodePassProtobuf } from "./encoding/protobuf.ts";

export type EncodingName = "json" | "protobuf";

export interface PassRequest {
  readonly modelId: string;
  /** From 1; 0 for a call outside the model's order. */
  readonly seqId: number;
  readonly data: readonly Datum[];
  readonly loss: Loss;
  readonly kind: "forward" | "forward_backward";
}

export const PROTOBUF_TYPE = "application/x-protobuf";
/** For results that may come in either form; 0.3 of SkyRL knows JSON only, 0.38 of the SDK protobuf only. */
export const ACCEPT_BOTH = `${PROTOBUF_TYPE}, application/json`;

export interface EncodedPass {
  readonly path: string;
  readonly contentType: string;
  readonly body: Uint8Array;
}

export function encodePass(name: EncodingName, request: PassRequest): EncodedPass {
  if (name === "json") {
    return { path: `/${request.kind}`, contentType: "application/json", body: encodePassJson(request) };
  }
  // Protobuf has one endpoint for both: the message says whether gradients are wanted.
  return { path: "/forward_backward", contentType: PROTOBUF_TYPE, body: encodePassProtobuf(request) };
}

const isProtobuf = ({ headers }: HttpAnswer): boolean => String(headers["content-type"] ?? "").includes(PROTOBUF_TYPE);

/** Throws an Error in words where the bytes are not what the content type says. */
export function decodePass(answer: HttpAnswer): PassResult {
  return isProtobuf(answer) ? decodePassProtobuf(answer.body) : decodePassJson(answer.body);
}

export function decodeSample(answer: HttpAnswer, promptLength: number): SampleResult {
  return isProtobuf(answer)
    ? decodeSampleProtobuf(answer.body, promptLength)
    : decodeSampleJson(answer.body, promptLength);
}
