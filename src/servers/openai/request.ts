/**
 * The body of a chat completion, read strictly: what is asked for and cannot be given is refused by name, since an answer that ignores
 * a setting looks like one that obeys it. Null is the same as absent, as it is for OpenAI.
 */
import type { AnswerWishes } from "../../chat/answer.ts";
import type { Conversation } from "../../tokens/conversation.ts";
import { OpenAiFault, refuse } from "./fault.ts";
import { readMessages, readTools } from "./messages.ts";

export interface ChatRequest {
  /** As the client names it. */
  readonly model: string;
  /** Without tools where they must not be called. */
  readonly conversation: Conversation;
  readonly wishes: AnswerWishes;
  readonly count: number;
  readonly isStreamed: boolean;
  readonly includesUsage: boolean;
  /** Likeliest tokens to tell in the place of each; undefined where no log-probabilities are asked for. */
  readonly topLogprobs: number | undefined;
  /** Whether several calls may be made in one turn. */
  readonly callsInParallel: boolean;
}

type Body = Readonly<Record<string, unknown>>;

/** Labels that say nothing to a model. */
const LABELS = ["user", "metadata", "safety_identifier", "prompt_cache_key", "prompt_cache_retention"];

/** Fields whose only value here is the one that asks for nothing. */
const NEUTRAL: Readonly<Record<string, (value: unknown) => boolean>> = {
  frequency_penalty: (value) => value === 0,
  presence_penalty: (value) => value === 0,
  logit_bias: (value) => isObject(value) && Object.keys(value).length === 0,
  response_format: (value) => isObject(value) && value.type === "text",
  modalities: (value) => Array.isArray(value) && value.every((kind) => kind === "text"),
  store: (value) => value === false,
  service_tier: (value) => value === "auto" || value === "default",
};

const READ = [
  "model",
  "messages",
  "stream",
  "stream_options",
  "temperature",
  "top_p",
  "top_k",
  "n",
  "max_tokens",
  "max_completion_tokens",
  "stop",
  "seed",
  "logprobs",
  "top_logprobs",
  "tools",
  "tool_choice",
  "parallel_tool_calls",
  "chat_template_kwargs",
];

const MOST_CHOICES = 128;
const MOST_TOP_LOGPROBS = 20;

export function readChatRequest(value: unknown): ChatRequest {
  if (!isObject(value)) throw new OpenAiFault({ status: 400, message: "The body should be a JSON object." });
  const body: Body = Object.fromEntries(Object.entries(value).filter(([, field]) => field !== null));
  refuseOthers(body);
  const { model } = body;
  if (typeof model !== "string" || model === "") refuse("model", "model should be a text: the name of a model.");
  const tools = readTools(body.tools);
  const mayCall = readToolChoice(body.tool_choice) && tools.length > 0;
  const topLogprobs = readTopLogprobs(body);
  return {
    model,
    conversation: { messages: readMessages(body.messages), ...(mayCall ? { tools } : {}) },
    wishes: readWishes(body, topLogprobs ?? 0),
    count: integer(body, "n", 1, MOST_CHOICES) ?? 1,
    isStreamed: boolean(body, "stream") ?? false,
    includesUsage: readStreamOptions(body),
    topLogprobs,
    callsInParallel: boolean(body, "parallel_tool_calls") ?? true,
  };
}

function refuseOthers(body: Body): void {
  for (const [name, value] of Object.entries(body)) {
    if (READ.includes(name) || LABELS.includes(name) || NEUTRAL[name]?.(value)) continue;
    const isKnown = name in NEUTRAL;
    refuse(
      name,
      isKnown ? `This value of ${name} is not supported here: leave it out.` : `${name} is not supported here.`,
      isKnown ? "unsupported_value" : "unsupported_parameter",
    );
  }
}

function readWishes(body: Body, topLogprobs: number): AnswerWishes {
  const most = integer(body, "max_completion_tokens", 1) ?? integer(body, "max_tokens", 1);
  const topP = number(body, "top_p", 0, 1);
  if (topP === 0) refuse("top_p", "top_p should be above 0.");
  const topK = integer(body, "top_k", -1);
  const seed = integer(body, "seed", 0);
  const stop = readStop(body.stop);
  const templateKwargs = body.chat_template_kwargs;
  if (templateKwargs !== undefined && !isObject(templateKwargs))
    refuse("chat_template_kwargs", "chat_template_kwargs should be an object.");
  return {
    temperature: number(body, "temperature", 0, 2) ?? 1,
    topLogprobs,
    isStreamed: body.stream === true,
    ...(most === undefined ? {} : { maxTokens: most }),
    ...(topP === undefined ? {} : { topP }),
    ...(topK === undefined || topK < 1 ? {} : { topK }),
    ...(seed === undefined ? {} : { seed }),
    ...(stop.length === 0 ? {} : { stop }),
    ...(templateKwargs === undefined ? {} : { templateKwargs: templateKwargs as Body }),
  };
}

function readStop(stop: unknown): readonly string[] {
  const list = stop === undefined ? [] : typeof stop === "string" ? [stop] : stop;
  if (!Array.isArray(list) || !list.every((text) => typeof text === "string"))
    return refuse("stop", "stop should be a text or a list of texts.");
  if (list.includes("")) refuse("stop", "A stop text should not be empty.");
  return list as string[];
}

/** Whether tools may be called. */
function readToolChoice(choice: unknown): boolean {
  if (choice === undefined || choice === "auto") return true;
  if (choice === "none") return false;
  return refuse(
    "tool_choice",
    "tool_choice can be auto or none here: a model in training cannot be forced to call a tool.",
    "unsupported_value",
  );
}

function readTopLogprobs(body: Body): number | undefined {
  const wanted = boolean(body, "logprobs") ?? false;
  const top = integer(body, "top_logprobs", 0, MOST_TOP_LOGPROBS);
  if (top !== undefined && !wanted) refuse("top_logprobs", "top_logprobs needs logprobs: true.");
  return wanted ? (top ?? 0) : undefined;
}

function readStreamOptions({ stream, stream_options: options }: Body): boolean {
  if (options === undefined) return false;
  if (stream !== true) refuse("stream_options", "stream_options needs stream: true.");
  if (!isObject(options)) refuse("stream_options", "stream_options should be an object.");
  const { include_usage: usage = false, include_obfuscation: obfuscation, ...others } = options as Body;
  const [other] = Object.keys(others);
  if (other !== undefined || obfuscation === true)
    refuse("stream_options", `stream_options.${other ?? "include_obfuscation"} is not supported here.`);
  return usage === true;
}

function isObject(value: unknown): value is Body {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function boolean(body: Body, name: string): boolean | undefined {
  const value = body[name];
  if (value === undefined || typeof value === "boolean") return value;
  return refuse(name, `${name} should be true or false.`);
}

function number(body: Body, name: string, least: number, most: number): number | undefined {
  const value = body[name];
  if (value === undefined) return undefined;
  if (typeof value === "number" && value >= least && value <= most) return value;
  return refuse(name, `${name} should be a number from ${least} to ${most}.`);
}

function integer(body: Body, name: string, least: number, most = Number.MAX_SAFE_INTEGER): number | undefined {
  const value = body[name];
  if (value === undefined) return undefined;
  if (Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most) return value as number;
  const range = most === Number.MAX_SAFE_INTEGER ? `at least ${least}` : `${least} to ${most}`;
  return refuse(name, `${name} should be a whole number of ${range}.`);
}
