/**
 * Dumps of the chat-completions API: request bodies, responses, and pairs of both under the names that loggers give
 * them. A response's message is appended to its request's; a response with several choices gives a row for each.
 */
import type { Message } from "../../tokens/conversation.ts";
import type { Format, FormatOptions } from "../format.ts";
import { contentText, damaged, isRecord, type JsonRecord, normalRole, type Row, skipped } from "../row.ts";
import { checkWeight } from "./messages.ts";

const REQUEST_KEYS = ["request", "req", "request_body", "requestBody", "input", "inputs", "body", "kwargs", "params"];
const RESPONSE_KEYS = ["response", "res", "resp", "response_body", "responseBody", "output", "outputs", "completion"];
/** How deep a request may lie inside its log line: `{"request": {"body": {…}}}`. */
const DEPTH = 3;

/** Loggers often store bodies as JSON text. */
function unwrapped(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function findMessages(value: unknown, depth = DEPTH): { messages: readonly unknown[]; body: JsonRecord } | undefined {
  const found = unwrapped(value);
  if (Array.isArray(found)) return found.some(isTurn) ? { messages: found, body: {} } : undefined;
  if (!isRecord(found)) return undefined;
  const own = unwrapped(found.messages);
  if (Array.isArray(own)) return { messages: own, body: found };
  if (depth === 0) return undefined;
  for (const key of REQUEST_KEYS) {
    const inner = key in found ? findMessages(found[key], depth - 1) : undefined;
    if (inner) return inner;
  }
  return undefined;
}

const isTurn = (value: unknown) => isRecord(value) && typeof value.role === "string";

/** The answers of a log line, one per choice; empty where it holds only a request. */
function findAnswers(value: unknown, isResponse: boolean, depth = DEPTH): readonly unknown[] {
  const found = unwrapped(value);
  if (typeof found === "string") return isResponse ? [{ role: "assistant", content: found }] : [];
  if (!isRecord(found)) return [];
  checkSucceeded(found);
  if (Array.isArray(found.choices)) return found.choices.map(choiceMessage);
  if (isResponse && isTurn(found)) return [found];
  if (isResponse && isRecord(found.message)) return [found.message];
  if (depth === 0) return [];
  for (const key of isResponse ? [...RESPONSE_KEYS, "body"] : RESPONSE_KEYS) {
    if (found[key] === undefined || found[key] === null) continue;
    const answers = findAnswers(found[key], true, depth - 1);
    if (answers.length > 0) return answers;
  }
  return [];
}

function choiceMessage(choice: unknown): unknown {
  if (isRecord(choice) && isRecord(choice.message)) return choice.message;
  if (isRecord(choice) && "delta" in choice) throw skipped("a streamed chunk, not a whole response");
  throw damaged("a choice has no message");
}

function checkSucceeded(response: JsonRecord): void {
  const status = response.status_code ?? response.statusCode;
  if ((typeof status === "number" && status >= 400) || isRecord(response.error)) throw skipped("the request failed");
}

const isToolTurn = (message: Message) => message.role === "tool";

function readMessage(value: unknown, options: FormatOptions): Message {
  if (!isRecord(value)) throw damaged("a message is not an object");
  checkWeight(value);
  const message: Message = { role: normalRole(value.role), content: contentText(value.content) };
  const kept = ["weight", "name", "reasoning_content"];
  if (options.tools === "keep") kept.push("tool_calls", "tool_call_id");
  return { ...message, ...Object.fromEntries(kept.filter((k) => value[k] != null).map((k) => [k, value[k]])) };
}

function readRow(messages: readonly unknown[], body: JsonRecord, options: FormatOptions) {
  const all = messages.map((m) => readMessage(m, options));
  const kept = options.tools === "keep" ? all : all.filter((m) => !isToolTurn(m));
  const tools = options.tools === "keep" && Array.isArray(body.tools) ? { tools: body.tools } : {};
  const row: Row = { messages: kept, ...tools };
  return { row, toolTurns: all.length - kept.length };
}

export const openaiFormat: Format = {
  name: "openai",
  expected: '{"request": {"messages": […]}, "response": {"choices": [{"message": {…}}]}}, or either half alone',
  detects(value) {
    if (!isRecord(value)) return false;
    if (Array.isArray(value.choices) || ("model" in value && Array.isArray(value.messages))) return true;
    const hasHalf = (keys: readonly string[]) => keys.some((key) => value[key] !== undefined);
    return hasHalf(RESPONSE_KEYS)
      ? findMessages(value) !== undefined || isRecord(unwrapped(value.response))
      : hasHalf(REQUEST_KEYS) && findMessages(value) !== undefined;
  },
  read(value, options) {
    const request = findMessages(value);
    const answers = findAnswers(value, false);
    if (!request && answers.length === 0) throw damaged("neither messages nor choices");
    const asked = request?.messages ?? [];
    const read = (answers.length > 0 ? answers.map((a) => [...asked, a]) : [asked]).map((messages) =>
      readRow(messages, request?.body ?? {}, options),
    );
    return { rows: read.map((r) => r.row), toolTurns: read.reduce((n, r) => n + r.toolTurns, 0) };
  },
};
