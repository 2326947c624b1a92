/**
 * What `config.json` of a Hugging Face folder says, checked: the embedded server runs Qwen3 and Llama decoders with full
 * attention and unquantised weights, and refuses everything else by name instead of computing something similar.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";

/** Llama 3's stretching of low rotary frequencies. */
export interface RopeScaling {
  readonly factor: number;
  readonly lowFrequencyFactor: number;
  readonly highFrequencyFactor: number;
  readonly originalContextLength: number;
}

export interface Architecture {
  readonly family: "qwen3" | "llama";
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly layers: number;
  readonly heads: number;
  /** Divides `heads`: grouped-query attention. */
  readonly keyValueHeads: number;
  /** Even: rotary embedding pairs dimension i with i + headDim / 2. */
  readonly headDim: number;
  readonly rmsEps: number;
  readonly tiedEmbeddings: boolean;
  readonly attentionBias: boolean;
  readonly mlpBias: boolean;
  readonly ropeTheta: number;
  readonly ropeScaling?: RopeScaling;
  /** Most tokens of prompt and completion together. */
  readonly contextLength: number;
  /** Tokens that end a sequence by themselves. */
  readonly eosTokens: readonly number[];
}

type Settings = Readonly<Record<string, unknown>>;

/** Reads and checks a folder's `config.json` and `generation_config.json`. Throws RL5001 or RL5002. */
export function readArchitecture(folder: string): Architecture {
  const config = readSettings(folder, "config.json");
  if (config === undefined)
    fail("RL5002", `${join(folder, "config.json")} does not exist, so this is not a Hugging Face model folder.`);
  const generation = readSettings(folder, "generation_config.json") ?? {};
  return parseArchitecture(config, generation, folder);
}

function readSettings(folder: string, name: string): Settings | undefined {
  const path = join(folder, name);
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    fail("RL5002", `${path} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    fail("RL5002", `${path} is not JSON: ${messageOf(error)}.`, { cause: error });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value))
    fail("RL5002", `${path} does not hold a JSON object.`);
  return value as Settings;
}

/** The same from parsed settings; `folder` only names the model in messages. */
export function parseArchitecture(config: Settings, generation: Settings, folder: string): Architecture {
  const family = config.model_type;
  if (family !== "qwen3" && family !== "llama")
    fail(
      "RL5001",
      `${folder} is a ${JSON.stringify(family ?? null)} model; the embedded server runs "qwen3" and "llama".`,
    );
  refuseUnsupported(config, folder);
  const number = (name: string, fallback?: number): number => {
    const value = config[name] ?? fallback;
    if (typeof value !== "number" || !Number.isFinite(value) || value <= 0)
      fail(
        "RL5002",
        `${folder}/config.json: ${name} should be a positive number, found ${JSON.stringify(value ?? null)}.`,
      );
    return value;
  };
  const whole = (name: string, fallback?: number): number => {
    const value = number(name, fallback);
    if (!Number.isInteger(value))
      fail("RL5002", `${folder}/config.json: ${name} should be a whole number, found ${value}.`);
    return value;
  };
  const heads = whole("num_attention_heads");
  const hiddenSize = whole("hidden_size");
  const architecture: Architecture = {
    family,
    vocabSize: whole("vocab_size"),
    hiddenSize,
    intermediateSize: whole("intermediate_size"),
    layers: whole("num_hidden_layers"),
    heads,
    keyValueHeads: whole("num_key_value_heads", heads),
    headDim: whole("head_dim", hiddenSize / heads),
    rmsEps: number("rms_norm_eps", 1e-6),
    tiedEmbeddings: config.tie_word_embeddings === true,
    attentionBias: config.attention_bias === true,
    mlpBias: config.mlp_bias === true,
    ...readRope(config, folder),
    contextLength: whole("max_position_embeddings"),
    eosTokens: readEos(config, generation),
  };
  if (architecture.heads % architecture.keyValueHeads !== 0 || architecture.headDim % 2 !== 0)
    fail(
      "RL5002",
      `${folder}/config.json: ${heads} heads, ${architecture.keyValueHeads} key/value heads of ${architecture.headDim} dimensions do not fit together: key/value heads must divide heads, and a head's size must be even.`,
    );
  return architecture;
}

function refuseUnsupported(config: Settings, folder: string): void {
  const refuse = (what: string): never => fail("RL5001", `${folder} ${what}, which the embedded server does not run.`);
  if (config.quantization_config != null) refuse("has quantised weights");
  const layerTypes = Array.isArray(config.layer_types) ? config.layer_types : [];
  const other = layerTypes.find((type) => type !== "full_attention");
  if (other !== undefined) refuse(`has layers of type ${JSON.stringify(other)}`);
  // `sliding_window` alone means nothing for Qwen3: `use_sliding_window` turns it on.
  const slides = config.model_type === "qwen3" ? config.use_sliding_window === true : true;
  if (slides && config.sliding_window != null) refuse("uses sliding-window attention");
  const activation = config.hidden_act ?? "silu";
  if (activation !== "silu" && activation !== "swish") refuse(`uses the activation ${JSON.stringify(activation)}`);
}

/** `rope_parameters` is how transformers 5 writes what 4 wrote as `rope_theta` and `rope_scaling`. */
function readRope(config: Settings, folder: string): Pick<Architecture, "ropeTheta" | "ropeScaling"> {
  const parameters = (config.rope_parameters ?? config.rope_scaling ?? {}) as Settings;
  const ropeTheta = Number(parameters.rope_theta ?? config.rope_theta ?? 10000);
  const type = parameters.rope_type ?? parameters.type ?? "default";
  if (!(ropeTheta > 0)) fail("RL5002", `${folder}/config.json: rope_theta should be a positive number.`);
  if (type === "default") return { ropeTheta };
  if (type !== "llama3")
    fail(
      "RL5001",
      `${folder} scales its rotary embedding by ${JSON.stringify(type)}; the embedded server knows "default" and "llama3".`,
    );
  const part = (name: string): number => {
    const value = Number(parameters[name]);
    if (!(value > 0)) fail("RL5002", `${folder}/config.json: the llama3 rotary scaling lacks a positive ${name}.`);
    return value;
  };
  return {
    ropeTheta,
    ropeScaling: {
      factor: part("factor"),
      lowFrequencyFactor: part("low_freq_factor"),
      highFrequencyFactor: part("high_freq_factor"),
      originalContextLength: part("original_max_position_embeddings"),
    },
  };
}

function readEos(config: Settings, generation: Settings): readonly number[] {
  const value = generation.eos_token_id ?? config.eos_token_id ?? [];
  return (Array.isArray(value) ? value : [value]).filter((token): token is number => Number.isInteger(token));
}

/** Rotary angles' cosines and sines for positions 0…length−1: each `[length, headDim / 2]`, row-major. */
export function rotaryTables(
  architecture: Architecture,
  length: number,
): { readonly cosines: Float32Array; readonly sines: Float32Array } {
  const half = architecture.headDim / 2;
  const frequencies = Array.from({ length: half }, (_, i) => frequencyOf(architecture, i));
  const cosines = new Float32Array(length * half);
  const sines = new Float32Array(length * half);
  for (let position = 0; position < length; position++)
    for (let i = 0; i < half; i++) {
      const angle = position * (frequencies[i] as number);
      cosines[position * half + i] = Math.cos(angle);
      sines[position * half + i] = Math.sin(angle);
    }
  return { cosines, sines };
}

/**
 * Frequency of dimension pair i: theta^(−2i/headDim). Under llama3 scaling, wavelengths longer than
 * original/low_freq_factor are divided by the factor, those shorter than original/high_freq_factor kept, and those
 * between interpolated.
 */
function frequencyOf({ ropeTheta, headDim, ropeScaling }: Architecture, i: number): number {
  const frequency = ropeTheta ** ((-2 * i) / headDim);
  if (ropeScaling === undefined) return frequency;
  const { factor, lowFrequencyFactor: low, highFrequencyFactor: high, originalContextLength } = ropeScaling;
  const turns = (originalContextLength * frequency) / (2 * Math.PI);
  if (turns < low) return frequency / factor;
  if (turns > high) return frequency;
  const smooth = (turns - low) / (high - low);
  return (1 - smooth) * (frequency / factor) + smooth * frequency;
}
