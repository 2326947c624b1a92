/**
 * `builtin:tiny`: a Qwen3 model of 0.14 million parameters with a byte-level tokenizer, small enough to learn a few
 * dozen facts in a minute on one core. It is written as an ordinary Hugging Face folder, the same bytes on every
 * machine, so that any program can load its tokenizer and weights.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";
import { syncFolder, temporaryName, writeFileWhole } from "../../files.ts";
import { type Architecture, parseArchitecture } from "./architecture.ts";
import { normals, streamOf } from "./random.ts";
import { encodeTensors, type Tensor } from "./safetensors.ts";
import { tensorShapes } from "./weights.ts";

/** The name under which specs and clients ask for it. */
export const TINY_MODEL = "builtin:tiny";

/** Changes whenever the bytes of the folder change; a test holds it against their digest. */
export const TINY_REVISION = "1";

const SEED = 20261130;
const SPECIAL_TOKENS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"] as const;
const END_OF_TEXT = 256;
const END_OF_TURN = 258;
/** 256 bytes, the special tokens, and unused ids up to a multiple of 16, where matrix products are fastest. */
const VOCABULARY = 272;
/** Found by trial: with 0.02, as larger models have it, learning starts about 100 steps later. */
const DEVIATION = 0.06;

const CONFIG = {
  architectures: ["Qwen3ForCausalLM"],
  attention_bias: false,
  attention_dropout: 0.0,
  bos_token_id: null,
  dtype: "float32",
  eos_token_id: END_OF_TURN,
  head_dim: 16,
  hidden_act: "silu",
  hidden_size: 64,
  initializer_range: DEVIATION,
  intermediate_size: 256,
  max_position_embeddings: 1024,
  model_type: "qwen3",
  num_attention_heads: 4,
  num_hidden_layers: 2,
  num_key_value_heads: 2,
  pad_token_id: END_OF_TEXT,
  rms_norm_eps: 1e-6,
  rope_theta: 10000.0,
  sliding_window: null,
  tie_word_embeddings: true,
  torch_dtype: "float32",
  use_cache: true,
  use_sliding_window: false,
  vocab_size: VOCABULARY,
} as const;

const GENERATION_CONFIG = {
  eos_token_id: END_OF_TURN,
  pad_token_id: END_OF_TEXT,
} as const;

const CHAT_TEMPLATE =
  "{%- for message in messages -%}" +
  "{{- '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' -}}" +
  "{%- endfor -%}" +
  "{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}";

/**
 * The character that stands for each byte in a byte-level vocabulary: printable bytes stand for themselves, the others
 * for the characters from U+0100 on (the mapping of GPT-2's tokenizer, which tokenizer libraries expect).
 */
function byteCharacters(): readonly string[] {
  const printable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || (byte >= 0xae && byte <= 0xff);
  let next = 0x100;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
}

function tokenizerJson(): unknown {
  const special = SPECIAL_TOKENS.map((content, i) => ({
    id: END_OF_TEXT + i,
    content,
    single_word: false,
    lstrip: false,
    rstrip: false,
    normalized: false,
    special: true,
  }));
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: special,
    normalizer: null,
    pre_tokenizer: { type: "ByteLevel", add_prefix_space: false, trim_offsets: true, use_regex: true },
    post_processor: null,
    decoder: { type: "ByteLevel", add_prefix_space: true, trim_offsets: true, use_regex: true },
    model: {
      type: "BPE",
      dropout: null,
      unk_token: null,
      continuing_subword_prefix: null,
      end_of_word_suffix: null,
      fuse_unk: false,
      byte_fallback: false,
      ignore_merges: false,
      vocab: Object.fromEntries(byteCharacters().map((character, byte) => [character, byte])),
      merges: [],
    },
  };
}

const TOKENIZER_CONFIG = {
  add_prefix_space: false,
  clean_up_tokenization_spaces: false,
  eos_token: "<|im_end|>",
  extra_special_tokens: { im_start_token: "<|im_start|>" },
  model_max_length: CONFIG.max_position_embeddings,
  pad_token: "<|endoftext|>",
  tokenizer_class: "PreTrainedTokenizerFast",
  chat_template: CHAT_TEMPLATE,
} as const;

export function tinyArchitecture(): Architecture {
  return parseArchitecture(CONFIG, GENERATION_CONFIG, TINY_MODEL);
}

/** Norms are one; every other value is normal with the standard deviation `DEVIATION`, from a stream of its tensor's name. */
export function tinyTensors(): ReadonlyMap<string, Tensor> {
  const tensors = new Map<string, Tensor>();
  for (const [name, shape] of tensorShapes(tinyArchitecture())) {
    const count = shape.reduce((product, side) => product * side, 1);
    const data = name.includes("norm")
      ? new Float32Array(count).fill(1)
      : normals(SEED, streamOf(name), count).map((value) => value * DEVIATION);
    tensors.set(name, { shape, data });
  }
  return tensors;
}

/** File names and contents of the folder. */
export function tinyFiles(): ReadonlyMap<string, Uint8Array> {
  const json = (value: unknown) => Buffer.from(`${JSON.stringify(value, null, 2)}\n`);
  return new Map<string, Uint8Array>([
    ["chat_template.jinja", Buffer.from(CHAT_TEMPLATE)],
    ["config.json", json(CONFIG)],
    ["generation_config.json", json(GENERATION_CONFIG)],
    ["model.safetensors", encodeTensors(tinyTensors())],
    ["tokenizer.json", json(tokenizerJson())],
    ["tokenizer_config.json", json(TOKENIZER_CONFIG)],
  ]);
}

/**
 * The model's folder below `cacheFolder`, written if it is not there yet. Its name carries the revision, so versions of
 * rlcli can share a cache; it appears by one rename, so callers may race.
 */
export function ensureTinyModel(cacheFolder: string): string {
  const folder = join(cacheFolder, `builtin-tiny-${TINY_REVISION}`);
  if (existsSync(join(folder, "config.json"))) return folder;
  try {
    writeFolderWhole(folder, tinyFiles());
  } catch (error) {
    // Another process may have put its own there meanwhile: the bytes are the same.
    if (!existsSync(join(folder, "config.json")))
      fail("RL5007", `The model folder ${folder} cannot be written: ${messageOf(error)}.`, { cause: error });
  }
  return folder;
}

function writeFolderWhole(folder: string, files: ReadonlyMap<string, Uint8Array>): void {
  const temporary = temporaryName(folder);
  mkdirSync(temporary, { recursive: true });
  try {
    for (const [name, bytes] of files) writeFileWhole(join(temporary, name), bytes);
    renameSync(temporary, folder);
    syncFolder(dirname(folder));
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
}
