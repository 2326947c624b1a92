/**
 * Dumps of Anthropic's Messages API: requests with their top-level `system`, responses, pairs of both under the names that
 * loggers give them, streamed or whole, and batch requests with their results.
 */
import { assemble, isChunkList, serverSentValues } from "../chunks.ts";
import type { Format, FormatOptions, FormatResult, Half } from "../format.ts";
import { answered, checkSucceeded, findBody, isTurnList, REQUEST_KEYS, RESPONSE_KEYS, unwrapped } from "../logs.ts";
import { damaged, isRecord, type JsonRecord, skipped } from "../row.ts";
import { contentText } from "../turns.ts";

const isRequest = (body: JsonRecord): boolean => isTurnList(unwrapped(body.messages));
const isMessage = (body: JsonRecord): boolean =>
  body.role === "assistant" && (Array.isArray(body.content) || typeof body.content === "string");
const hasBlocks = (message: unknown): boolean =>
  isRecord(message) &&
  Array.isArray(message.content) &&
  message.content.some(
    (part) => isRecord(part) && /^(tool_use|tool_result|thinking|redacted_thinking)$/.test(String(part.type)),
  );

/** The response of a log line, put together where it was streamed. */
function findResponse(value: unknown, isInside = false, depth = 4): JsonRecord | undefined {
  const found = typeof value === "string" ? (serverSentValues(value) ?? unwrapped(value)) : value;
  if (isChunkList(found)) return assemble(found);
  if (!isRecord(found) || depth === 0) return undefined;
  if (isInside || !isRequest(found)) checkSucceeded(found);
  if (found.type === "error") throw skipped("the request failed");
  if (isMessage(found) && (isInside || found.type === "message")) return found;
  for (const key of isInside ? [...RESPONSE_KEYS, "body", "message", "events"] : [...RESPONSE_KEYS, "events"]) {
    const inner = found[key] == null ? undefined : findResponse(found[key], true, depth - 1);
    if (inner) return inner;
  }
  return undefined;
}

function systemOf({ system }: JsonRecord): readonly unknown[] {
  if (system === undefined || system === null) return [];
  const text = contentText(system);
  return text.trim() === "" ? [] : [{ role: "system", content: text }];
}

/** Tool definitions in the chat-completions form; tools that the server runs have no schema and are left out. */
function toolsOf(tools: unknown): unknown {
  if (!Array.isArray(tools)) return undefined;
  return (tools as unknown[]).flatMap((tool) => {
    if (!isRecord(tool) || !isRecord(tool.input_schema)) return [];
    const { name, description, input_schema } = tool;
    const described = description === undefined ? {} : { description };
    return [{ type: "function", function: { name, ...described, parameters: input_schema } }];
  });
}

/** Lines of batches: `{custom_id, params}` and `{custom_id, result: {type, message}}`. */
function batchHalf(value: JsonRecord): Half | undefined {
  const key = value.custom_id;
  if (typeof key !== "string") return undefined;
  if (isRecord(value.params)) return { key, side: "request", body: value.params };
  if (!isRecord(value.result)) return undefined;
  const { type, message } = value.result;
  return { key, side: "result", body: type === "succeeded" ? message : { error: { type } } };
}

function read(value: unknown, options: FormatOptions): FormatResult {
  const half = isRecord(value) ? batchHalf(value) : undefined;
  if (half) return { rows: [], toolTurns: 0, half };
  const request = findBody(value, REQUEST_KEYS, isRequest);
  const response = findResponse(value);
  if (!request && !response) throw damaged('no list under "messages" and no response');
  const body = request ?? {};
  const prompt = [...systemOf(body), ...((unwrapped(body.messages) ?? []) as readonly unknown[])];
  return answered(prompt, response ? [[response]] : [], toolsOf(body.tools), options);
}

export const anthropicFormat: Format = {
  name: "anthropic",
  isLog: true,
  expected:
    '{"request": {"system": "…", "messages": […]}, "response": {"role": "assistant", "content": […]}}, or either half alone',
  detects(value) {
    if (!isRecord(value)) return false;
    if (typeof value.custom_id === "string" && (isRecord(value.result) || isRecord(value.params))) return true;
    const request = findBody(value, REQUEST_KEYS, isRequest);
    if (request) {
      if (typeof request.system === "string" || Array.isArray(request.system)) return true;
      if ((unwrapped(request.messages) as readonly unknown[]).some(hasBlocks)) return true;
      if (Array.isArray(request.tools) && request.tools.some((t) => isRecord(t) && isRecord(t.input_schema)))
        return true;
    }
    return looksLikeResponse(value);
  },
  read,
};

function looksLikeResponse(value: JsonRecord): boolean {
  try {
    const response = findResponse(value);
    return response !== undefined && response.type === "message" && Array.isArray(response.content);
  } catch {
    return false;
  }
}
