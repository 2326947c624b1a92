/** What the client takes and gives: typed arrays instead of lists, names instead of wire fields. */
import type { TopK } from "./proto/topk.ts";

/** A picture within an input, for servers whose model sees. */
export interface InputImage {
  /** How many of the input's tokens stand before it; images at one place follow each other in order. */
  readonly at: number;
  /** The file's bytes. */
  readonly data: Uint8Array;
  readonly format: "png" | "jpeg";
  /** Positions that it takes; the server checks it. */
  readonly expectedTokens: number;
}

/** One training example. Position i of every tensor belongs to position i of the input. */
export interface Datum {
  /** Input tokens; N of them where there are no images. */
  readonly input: Int32Array;
  /** N is then the number of tokens and of the images' positions together. */
  readonly images?: readonly InputImage[];
  /**
   * By name: `target_tokens` [N] as Int32Array, all others [N] as Float32Array. Where there are K targets a position, all are
   * [N · K], the K of a position side by side.
   */
  readonly lossInputs: Readonly<Record<string, Int32Array | Float32Array>>;
}

export interface Loss {
  readonly name: string;
  /** Text is understood by hosted servers only. */
  readonly config?: Readonly<Record<string, number | string>>;
}

/** Whole numbers are held in 32 bits where all fit, else as doubles, exact up to 2^53. */
export type OutputArray = Float32Array | Int32Array | Float64Array;

/** The result of forward or forward_backward. */
export interface PassResult {
  /** One entry a datum, in order; `logprobs` is [N] (or [N · K]), log p(target) in nats; a critic gives `values` [N] instead. */
  readonly outputs: readonly (Readonly<Record<string, OutputArray>> & {
    readonly logprobs?: Float32Array;
    readonly values?: Float32Array;
  })[];
  readonly metrics: Readonly<Record<string, number>>;
}

export interface SamplingParams {
  readonly maxTokens: number;
  /** 1 where absent; 0 is greedy. */
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly seed?: number;
  /**
   * How many tokens at the end of the prompt were sampled from the same seed before: the answer then goes on as one request would
   * have. Only the embedded server has it.
   */
  readonly seedPosition?: number;
  /** Always explicit: servers disagree about what its absence means. */
  readonly stop: readonly number[] | readonly string[];
}

export interface SampledSequence {
  /** [T] */
  readonly tokens: Int32Array;
  /** [T] log-probabilities in nats; empty if the server gave none. */
  readonly logprobs: Float32Array;
  readonly stopReason: "stop" | "length";
  /** [T, k], where asked for and served. */
  readonly topk?: TopK;
  /** The server's name for the sequence, where it gives one. */
  readonly sequenceId?: string;
}

export interface SampleResult {
  readonly sequences: readonly SampledSequence[];
  /** [prompt length], the first NaN. Present only if asked for. */
  readonly promptLogprobs?: Float32Array;
  /** [prompt length, k]. Present only if asked for. */
  readonly topkPromptLogprobs?: TopK;
}

export interface CheckpointInfo {
  readonly checkpointId: string;
  /** `training`, `sampler` or `external`. */
  readonly type: string;
  /** ISO 8601 in UTC. */
  readonly time: string;
  /** In three parts: `tinker://run/kind/name`. */
  readonly tinkerPath: string;
  readonly sizeBytes?: number;
  readonly isPublic?: boolean;
  /** ISO 8601 in UTC; absent where it is kept for good. */
  readonly expiresAt?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface TrainingRunInfo {
  readonly runId: string;
  readonly baseModel: string;
  readonly isLora: boolean;
  readonly loraRank?: number;
  readonly lastRequestTime?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface SessionInfo {
  readonly runIds: readonly string[];
  readonly samplerIds: readonly string[];
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface SamplerInfo {
  readonly id: string;
  readonly baseModel: string;
  /** Absent where the base model itself is sampled. */
  readonly modelPath?: string;
}

/** What get_info says; servers differ in how much that is. */
export interface ModelDescription {
  readonly modelId: string;
  /** A Hugging Face name or a folder: where the tokenizer is. */
  readonly modelName?: string;
  /** 0 for full training. */
  readonly loraRank?: number;
}

export interface ModelInfo {
  readonly modelName?: string;
  readonly maxContextLength?: number;
  readonly trainable?: boolean;
  readonly sampleable?: boolean;
}
