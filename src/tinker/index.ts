/** `rlcli/tinker`: a client for servers that speak the Tinker protocol, usable by itself. */
export { TinkerClient, type TinkerClientOptions } from "./client.ts";
export type {
  CheckpointInfo,
  Datum,
  Loss,
  ModelInfo,
  PassResult,
  SampledSequence,
  SampleResult,
  SamplingParams,
  TrainingRunInfo,
} from "./data.ts";
export { type Encoding, jsonEncoding, type PassRequest } from "./encoding.ts";
export { TinkerError, type TinkerErrorKind } from "./errors.ts";
export type { CallOptions, Future, ResultOptions } from "./future.ts";
export type { SeqOptions, TrainingModel } from "./model.ts";
export { type CheckpointPath, formatCheckpointPath, parseCheckpointPath } from "./paths.ts";
export type { RetryPolicy } from "./retry.ts";
export type { SampleRequest, Sampler } from "./sampler.ts";
export type { ModelOptions, Session, SessionOptions } from "./session.ts";
export type { AdamParams } from "./wire.ts";
