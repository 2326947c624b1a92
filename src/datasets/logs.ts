/** What formats share in looking at log lines: bodies stored as JSON text, halves under the names that loggers use. */
import type { Candidate, FormatOptions, FormatResult } from "./format.ts";
import { isRecord, type JsonRecord, skipped } from "./row.ts";
import { readTurns, type Turns } from "./turns.ts";

export const REQUEST_KEYS = [
  "request",
  "req",
  "request_body",
  "requestBody",
  "proxy_server_request",
  "input",
  "inputs",
  "body",
  "kwargs",
  "params",
  "prompt",
];
export const RESPONSE_KEYS = [
  "response",
  "res",
  "resp",
  "response_body",
  "responseBody",
  "output",
  "outputs",
  "completion",
  "preferred_output",
  "result",
];
/** How deep a body may lie inside its log line: `{"request": {"body": {…}}}`. */
export const DEPTH = 3;

/** Loggers often store bodies as JSON text. */
export function unwrapped(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

export const isTurn = (value: unknown): boolean =>
  isRecord(value) && (typeof value.role === "string" || typeof value.from === "string");

export const isTurnList = (value: unknown): value is readonly unknown[] => Array.isArray(value) && value.some(isTurn);

/** Throws for what failed: there is nothing to learn from. */
export function checkSucceeded(response: JsonRecord): void {
  const status = response.status_code ?? response.statusCode;
  if ((typeof status === "number" && status >= 400) || isRecord(response.error)) throw skipped("the request failed");
}

/** The body in which a test holds: the value itself, or what lies under one of the keys, at most `depth` deep. */
export function findBody(
  value: unknown,
  keys: readonly string[],
  holds: (body: JsonRecord) => boolean,
  depth = DEPTH,
): JsonRecord | undefined {
  const found = unwrapped(value);
  if (!isRecord(found)) return undefined;
  if (holds(found)) return found;
  if (depth === 0) return undefined;
  for (const key of keys) {
    const inner = found[key] == null ? undefined : findBody(found[key], keys, holds, depth - 1);
    if (inner) return inner;
  }
  return undefined;
}

/** A conversation of raw messages, canonical. */
export function candidateOf(
  raw: readonly unknown[],
  tools: unknown,
  options: FormatOptions,
): { row: Candidate; toolTurns: number } {
  const turns: Turns = { messages: [], toolTurns: 0 };
  for (const message of raw) readTurns(message, options, turns);
  const { messages, toolTurns } = turns;
  const kept = options.keepTools && Array.isArray(tools) && tools.length > 0;
  return { row: kept ? { messages, tools } : { messages }, toolTurns };
}

/** A row for each of the answers to one prompt, or the prompt alone where there is none. */
export function answered(
  prompt: readonly unknown[],
  answers: readonly (readonly unknown[])[],
  tools: unknown,
  options: FormatOptions,
): FormatResult {
  const taken = options.allChoices ? answers : answers.slice(0, 1);
  const lists = taken.length > 0 ? taken.map((answer) => [...prompt, ...answer]) : [prompt];
  const read = lists.map((raw) => candidateOf(raw, tools, options));
  return { rows: read.map((r) => r.row), toolTurns: read.reduce((sum, r) => sum + r.toolTurns, 0) };
}

/** Tool definitions of a request: `tools`, or the older `functions`. */
export function toolsOf(body: JsonRecord): unknown {
  if (Array.isArray(body.tools)) return body.tools;
  return Array.isArray(body.functions)
    ? body.functions.map((f: unknown) => ({ type: "function", function: f }))
    : undefined;
}
