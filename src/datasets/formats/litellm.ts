/**
 * LiteLLM's logs: the standard logging payload and the spend log, one call a line, with the request's messages beside the
 * response. Whatever the provider, both sides are in the chat-completions form, except where the proxy passed another through.
 */
import type { Format } from "../format.ts";
import { isTurnList, unwrapped } from "../logs.ts";
import { isRecord, type JsonRecord, skipped } from "../row.ts";
import { anthropicFormat } from "./anthropic.ts";
import { openaiFormat } from "./openai.ts";

const MARKS = [
  "litellm_call_id",
  "litellm_params",
  "standard_logging_object",
  "custom_llm_provider",
  "call_type",
  "model_group",
];

function payloadOf(value: JsonRecord): JsonRecord {
  const inner = unwrapped(value.standard_logging_object ?? value.standard_logging_payload);
  return isRecord(inner) ? inner : value;
}

/** The request with the system prompt that a pass-through call keeps beside its messages. */
function bodiesOf(payload: JsonRecord): { request: JsonRecord; response: unknown } {
  const proxied = unwrapped(payload.proxy_server_request);
  const body = isRecord(proxied) ? (isRecord(proxied.body) ? proxied.body : proxied) : {};
  const messages = unwrapped(payload.messages) as unknown;
  const parameters = isRecord(payload.model_parameters) ? payload.model_parameters : {};
  const own = isTurnList(messages)
    ? { messages }
    : typeof messages === "string" && messages !== ""
      ? { messages: [{ role: "user", content: messages }] }
      : {};
  return { request: { ...parameters, ...body, ...own }, response: unwrapped(payload.response) };
}

export const litellmFormat: Format = {
  name: "litellm",
  isLog: true,
  expected: '{"call_type": "acompletion", "messages": […], "response": {"choices": […]}, "metadata": {…}}',
  detects: (value) =>
    isRecord(value) &&
    ("standard_logging_object" in value ||
      (MARKS.some((mark) => mark in value) && ("messages" in value || "response" in value))),
  read(value, options) {
    const payload = isRecord(value) ? payloadOf(value) : {};
    if (payload.status === "failure" || (typeof payload.error_str === "string" && payload.error_str !== ""))
      throw skipped("the request failed");
    const pair = bodiesOf(payload);
    return (anthropicFormat.detects(pair) ? anthropicFormat : openaiFormat).read(pair, options);
  },
};
