/** `rlcli/tinker`: a client for servers that speak the Tinker protocol, usable by itself. */

export type { RetryPolicy } from "../retry.ts";
export type { Archive } from "./archive.ts";
export type { BillingTimes } from "./billing.ts";
export type { ChunkLimits } from "./chunks.ts";
export { TinkerClient, type TinkerClientOptions } from "./client.ts";
export type { Compress } from "./compress.ts";
export type { ServerConfig } from "./config.ts";
export type { CustomLoss, CustomLossValue, CustomPass } from "./custom.ts";
export type {
  CheckpointInfo,
  Datum,
  InputImage,
  Loss,
  ModelDescription,
  ModelInfo,
  OutputArray,
  PassResult,
  SampledSequence,
  SampleResult,
  SamplerInfo,
  SamplingParams,
  SessionInfo,
  TrainingRunInfo,
} from "./data.ts";
export type { EncodingName } from "./encoding.ts";
export { isUnsupported, TinkerError, type TinkerErrorKind } from "./errors.ts";
export type { Exchange, OnExchange } from "./exchange.ts";
export type { CallOptions, Future, Pending, ResultOptions } from "./future.ts";
export type { GateTimes } from "./gate.ts";
export type { PassOptions, SaveOptions, SeqOptions, TrainingModel } from "./model.ts";
export { type CheckpointPath, formatCheckpointPath, parseCheckpointPath } from "./paths.ts";
export { type TopK, topkRow } from "./proto/topk.ts";
export { type CleanModel, createCleanModel } from "./quirks/gradients.ts";
export { type ServerFamily, serverFamily, serverKind } from "./quirks/probe.ts";
export { planStep, type StepPlan } from "./quirks/reduction.ts";
export { ignoredSettings, SERVER_TRAITS, type ServerKind, type ServerTraits } from "./quirks.ts";
export type { CopyTarget, ExternalWeights, Rest, Supported } from "./rest.ts";
export type { Completions, SampleRequest, Sampler } from "./sampler.ts";
export type { ModelOptions, Session, SessionOptions } from "./session.ts";
export type { AdamParams } from "./wire.ts";
