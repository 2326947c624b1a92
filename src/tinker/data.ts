/** What the client takes and gives: typed arrays instead of lists, names instead of wire fields. */

/** One training example. Position i of every tensor belongs to position i of the input. */
export interface Datum {
  /** [N] input tokens. */
  readonly input: Int32Array;
  /** By name: `target_tokens` [N] as Int32Array, all others [N] as Float32Array. */
  readonly lossInputs: Readonly<Record<string, Int32Array | Float32Array>>;
}

export interface Loss {
  readonly name: string;
  readonly config?: Readonly<Record<string, number>>;
}

/** The result of forward or forward_backward. */
export interface PassResult {
  /** One entry a datum, in order; `logprobs` is [N], log p(target) in nats. */
  readonly outputs: readonly Readonly<Record<string, Float32Array>>[];
  readonly metrics: Readonly<Record<string, number>>;
}

export interface SamplingParams {
  readonly maxTokens: number;
  /** 1 where absent; 0 is greedy. */
  readonly temperature?: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly seed?: number;
  /** Always explicit: servers disagree about what its absence means. */
  readonly stop: readonly number[] | readonly string[];
}

export interface SampledSequence {
  /** [T] */
  readonly tokens: Int32Array;
  /** [T] log-probabilities in nats; empty if the server gave none. */
  readonly logprobs: Float32Array;
  readonly stopReason: "stop" | "length";
}

export interface SampleResult {
  readonly sequences: readonly SampledSequence[];
  /** [prompt length], the first NaN. Present only if asked for. */
  readonly promptLogprobs?: Float32Array;
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
}

export interface TrainingRunInfo {
  readonly runId: string;
  readonly baseModel: string;
  readonly isLora: boolean;
  readonly loraRank?: number;
  readonly lastRequestTime?: string;
}

export interface ModelInfo {
  readonly modelName?: string;
  readonly maxContextLength?: number;
  readonly trainable?: boolean;
  readonly sampleable?: boolean;
}
