/**
 * OpenTelemetry spans of generative AI, one a line: attributes `gen_ai.input.messages` and `gen_ai.output.messages` with their
 * parts, or the older `gen_ai.prompt.N.…` and `gen_ai.completion.N.…`. Attributes may be an object or OTLP's list.
 */
import type { Format } from "../format.ts";
import { answered, unwrapped } from "../logs.ts";
import { damaged, isRecord, type JsonRecord, skipped } from "../row.ts";

/** Attributes by name, whichever way they are written. */
function attributesOf(span: unknown): JsonRecord {
  const attributes = isRecord(span) ? span.attributes : undefined;
  if (!Array.isArray(attributes)) return isRecord(attributes) ? attributes : {};
  const entries = (attributes as unknown[]).flatMap((a) =>
    isRecord(a) && typeof a.key === "string" ? [[a.key, plain(a.value)]] : [],
  );
  return Object.fromEntries(entries) as JsonRecord;
}

/** OTLP wraps each value in its type: `{"stringValue": "…"}`. */
const plain = (value: unknown): unknown => (isRecord(value) ? Object.values(value)[0] : value);

/** A message of the semantic conventions, in the chat-completions form. */
function chatMessage(value: unknown): unknown {
  if (!isRecord(value) || !Array.isArray(value.parts)) return value;
  const parts = (value.parts as unknown[]).filter(isRecord);
  const response = parts.find((part) => part.type === "tool_call_response");
  if (response) return { role: "tool", tool_call_id: response.id, content: response.response ?? response.result };
  const calls = parts.filter((part) => part.type === "tool_call");
  return {
    role: value.role,
    content: parts.filter((part) => part.type !== "tool_call").map(chatPart),
    ...(calls.length > 0 ? { tool_calls: calls.map(chatCall) } : {}),
  };
}

function chatPart({ type, content, ...rest }: JsonRecord): unknown {
  return type === "text" || type === "reasoning" ? { type, text: content } : { type, ...rest };
}

const chatCall = ({ id, name, arguments: args }: JsonRecord): unknown => ({
  id,
  type: "function",
  function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args ?? {}) },
});

/** `gen_ai.prompt.0.role`, `gen_ai.prompt.0.content`, … in the order of their numbers. */
function numbered(attributes: JsonRecord, prefix: string, role?: string): unknown[] {
  const messages: unknown[] = [];
  for (let i = 0; `${prefix}.${i}.role` in attributes || `${prefix}.${i}.content` in attributes; i += 1) {
    messages.push({
      role: attributes[`${prefix}.${i}.role`] ?? role,
      content: attributes[`${prefix}.${i}.content`] ?? null,
    });
  }
  return messages;
}

const listOf = (value: unknown): unknown[] | undefined => {
  const found = unwrapped(value);
  return Array.isArray(found) ? (found as unknown[]).map(chatMessage) : undefined;
};

function systemOf(attributes: JsonRecord): unknown[] {
  const parts = unwrapped(attributes["gen_ai.system_instructions"]);
  if (!Array.isArray(parts) || parts.length === 0) return [];
  return [{ role: "system", content: (parts as unknown[]).map((part) => (isRecord(part) ? chatPart(part) : part)) }];
}

const isOurs = (name: string): boolean =>
  /^gen_ai\.(input\.messages|output\.messages|prompt\.0\.|completion\.0\.)/.test(name);

export const otelFormat: Format = {
  name: "otel",
  isLog: true,
  expected: '{"name": "chat m", "attributes": {"gen_ai.input.messages": "[…]", "gen_ai.output.messages": "[…]"}}',
  detects: (value) => Object.keys(attributesOf(value)).some(isOurs),
  read(value, options) {
    const attributes = attributesOf(value);
    if (!Object.keys(attributes).some(isOurs)) {
      if (isRecord(value) && "attributes" in value) throw skipped("a span of no model");
      throw damaged("no span with attributes");
    }
    if ("error.type" in attributes) throw skipped("the request failed");
    const prompt = listOf(attributes["gen_ai.input.messages"]) ?? numbered(attributes, "gen_ai.prompt");
    const answers =
      listOf(attributes["gen_ai.output.messages"]) ?? numbered(attributes, "gen_ai.completion", "assistant");
    const tools = unwrapped(attributes["gen_ai.tool.definitions"]);
    return answered(
      [...systemOf(attributes), ...prompt],
      answers.map((answer) => [answer]),
      tools,
      options,
    );
  },
};
