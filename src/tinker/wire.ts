/** The JSON bodies of the protocol, as far as they are used. Field names are the wire's. */

export interface WireTensor {
  readonly data: readonly (number | null)[];
  readonly dtype: "int64" | "float32";
  readonly shape?: readonly number[] | null;
}

export interface WireDatum {
  readonly model_input: WireInput;
  readonly loss_fn_inputs: Readonly<Record<string, WireTensor>>;
}

export interface WireInput {
  readonly chunks: readonly (
    | { readonly type: "encoded_text"; readonly tokens: readonly number[] }
    | {
        readonly type: "image";
        /** Base64. */
        readonly data: string;
        readonly format: string;
        readonly expected_tokens: number | null;
      }
    | { readonly type: "dmel"; readonly dmel: string }
  )[];
}

export interface WirePass {
  readonly data: readonly WireDatum[];
  readonly loss_fn: string;
  readonly loss_fn_config: Readonly<Record<string, number | string>> | null;
}

export interface WirePassResult {
  readonly loss_fn_output_type?: string;
  readonly loss_fn_outputs: readonly Readonly<Record<string, WireTensor>>[];
  readonly metrics?: Readonly<Record<string, number>> | null;
}

/** Fields left out mean "as the server has it". */
export interface AdamParams {
  readonly learning_rate: number;
  readonly beta1?: number;
  readonly beta2?: number;
  readonly eps?: number;
  readonly weight_decay?: number;
  readonly grad_clip_norm?: number;
}

export interface WireSamplingParams {
  readonly max_tokens?: number;
  readonly temperature?: number;
  readonly top_p?: number;
  readonly top_k?: number;
  readonly seed?: number;
  readonly seed_position?: number;
  readonly stop?: readonly number[] | readonly string[] | null;
}

export interface WireSample {
  readonly sequences: readonly {
    readonly stop_reason: string;
    readonly tokens: readonly number[];
    readonly logprobs?: readonly (number | null)[] | null;
  }[];
  readonly prompt_logprobs?: readonly (number | null)[] | null;
  /** By prompt token; a row is null where undefined. */
  readonly topk_prompt_logprobs?: readonly (readonly (readonly [number, number])[] | null)[] | null;
}

export interface WireCheckpoint {
  readonly checkpoint_id: string;
  readonly checkpoint_type: string;
  readonly time: string;
  readonly tinker_path: string;
  readonly size_bytes?: number | null;
  readonly public?: boolean;
  readonly user_metadata?: Readonly<Record<string, string>> | null;
  readonly expires_at?: string | null;
}

export interface WireTrainingRun {
  readonly training_run_id: string;
  readonly base_model: string;
  readonly is_lora: boolean;
  readonly lora_rank?: number | null;
  readonly last_request_time?: string;
  readonly user_metadata?: Readonly<Record<string, string>> | null;
}
