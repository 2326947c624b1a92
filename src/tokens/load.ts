/** Loads what a Hugging Face model folder says about text: tokenizer.json, tokenizer_config.json and the chat template. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { fail, messageOf } from "../diagnostic.ts";
import { type Digest, digestJson } from "../digest.ts";
import { Renderer } from "./renderer.ts";
import { ChatTemplate } from "./template.ts";
import { Tokenizer } from "./tokenizer.ts";

interface TokenizerConfig {
  readonly chat_template?: string | readonly { readonly name: string; readonly template: string }[];
  readonly [key: string]: unknown;
}

interface TextFiles {
  readonly tokenizer: object;
  readonly config: TokenizerConfig;
  /** By name; `default` and perhaps `tool_use`. */
  readonly templates: ReadonlyMap<string, string>;
  /** `eos_token_id` of generation_config.json. */
  readonly stops: readonly number[];
}

/** The variables that `transformers` gives every template beside the conversation. */
const SPECIAL_NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

async function readText(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, "utf8")).replace(/^\uFEFF/, "");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    return fail("RL6101", `${path} cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

async function readJson(path: string): Promise<object | undefined> {
  const text = await readText(path);
  if (text === undefined) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  } catch (error) {
    return fail("RL6101", `${path} is not valid JSON: ${messageOf(error)}.`, { cause: error });
  }
  return fail("RL6101", `${path} does not hold a JSON object.`);
}

async function readTextFiles(folder: string): Promise<TextFiles> {
  const [tokenizer, config = {}, generation = {}, jinja] = await Promise.all([
    readJson(join(folder, "tokenizer.json")),
    readJson(join(folder, "tokenizer_config.json")) as Promise<TokenizerConfig | undefined>,
    readJson(join(folder, "generation_config.json")) as Promise<{ readonly eos_token_id?: unknown } | undefined>,
    readText(join(folder, "chat_template.jinja")),
  ]);
  if (!tokenizer) {
    fail("RL6101", `${folder} has no tokenizer.json. A model folder needs one, as saved by transformers.`);
  }
  const templates = new Map<string, string>();
  const given = config.chat_template;
  if (typeof given === "string") templates.set("default", given);
  else for (const { name, template } of given ?? []) templates.set(name, template);
  if (jinja !== undefined) templates.set("default", jinja);
  const stops = [generation.eos_token_id ?? []].flat().filter((id): id is number => Number.isSafeInteger(id));
  return { tokenizer, config, templates, stops };
}

function specialVariables(config: TokenizerConfig): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const name of SPECIAL_NAMES) {
    const value = config[name] as string | { content?: string } | null | undefined;
    const text = typeof value === "string" ? value : value?.content;
    if (text !== undefined) variables[name] = text;
  }
  return variables;
}

/** Loads tokenizer and chat template of a model folder. Fails with RL6101 or RL6102. */
export async function loadRenderer(folder: string): Promise<Renderer> {
  const { tokenizer, config, templates, stops } = await readTextFiles(folder);
  const source = templates.get("default");
  if (source === undefined) {
    fail("RL6102", `${folder} has no chat template: neither chat_template.jinja nor one in tokenizer_config.json.`);
  }
  const toolSource = templates.get("tool_use");
  return new Renderer({
    tokenizer: new Tokenizer(tokenizer, config, join(folder, "tokenizer.json")),
    template: new ChatTemplate(source, folder),
    ...(toolSource === undefined ? {} : { toolTemplate: new ChatTemplate(toolSource, folder) }),
    variables: specialVariables(config),
    stops,
  });
}

/** Loads only the tokenizer, for models without a chat template. Fails with RL6101. */
export async function loadTokenizer(folder: string): Promise<Tokenizer> {
  const { tokenizer, config } = await readTextFiles(folder);
  return new Tokenizer(tokenizer, config, join(folder, "tokenizer.json"));
}

/** What decides how text becomes tokens, as one digest: part of a run's generation. */
export async function textDigest(folder: string): Promise<Digest> {
  const { tokenizer, config, templates } = await readTextFiles(folder);
  return digestJson({ tokenizer, special: specialVariables(config), templates: Object.fromEntries(templates) });
}
