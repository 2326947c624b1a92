/** Messages and tools as clients send them, to what chat templates take. */
import type { Message } from "../../tokens/conversation.ts";
import { refuse } from "./fault.ts";

type Fields = Readonly<Record<string, unknown>>;

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** What models are not taught is called by the name they are. */
const ROLES: Readonly<Record<string, string>> = {
  system: "system",
  developer: "system",
  user: "user",
  assistant: "assistant",
  tool: "tool",
};

export function readMessages(value: unknown): readonly Message[] {
  if (!Array.isArray(value) || value.length === 0)
    return refuse("messages", "messages should be a list of at least one.");
  const names = new Map<string, string>();
  return value.map((message: unknown, i) => readMessage(message, `messages[${i}]`, names));
}

/** `names`: of the functions that were called before, by the call's id. */
function readMessage(value: unknown, place: string, names: Map<string, string>): Message {
  if (!isObject(value)) return refuse(place, `${place} should be an object.`);
  const role = ROLES[String(value.role)];
  if (role === undefined)
    return refuse(`${place}.role`, `${place}.role should be one of ${Object.keys(ROLES).join(", ")}.`);
  if (value.audio != null || value.function_call != null)
    refuse(place, `${place} has ${value.audio != null ? "audio" : "function_call"}, which is not supported here.`);
  const calls = value.tool_calls == null ? [] : readCalls(value.tool_calls, `${place}.tool_calls`);
  for (const { id, function: called } of calls) if (id !== undefined) names.set(id, called.name);
  const content = readContent(value.content, `${place}.content`, role === "assistant");
  const name = typeof value.name === "string" ? value.name : names.get(String(value.tool_call_id));
  return {
    role,
    content,
    ...(name === undefined ? {} : { name }),
    ...(calls.length === 0 ? {} : { tool_calls: calls }),
    ...(typeof value.tool_call_id === "string" ? { tool_call_id: value.tool_call_id } : {}),
    ...(typeof value.reasoning_content === "string" ? { reasoning_content: value.reasoning_content } : {}),
  };
}

/** Texts in parts are one text. */
function readContent(value: unknown, place: string, mayBeAbsent: boolean): string {
  if (typeof value === "string") return value;
  if (value == null && mayBeAbsent) return "";
  if (!Array.isArray(value)) return refuse(place, `${place} should be a text or a list of parts.`);
  return value
    .map((part: unknown, i) => {
      if (isObject(part) && part.type === "text" && typeof part.text === "string") return part.text;
      if (isObject(part) && part.type === "refusal" && typeof part.refusal === "string") return part.refusal;
      const type = isObject(part) ? String(part.type) : typeof part;
      return refuse(`${place}[${i}]`, `A part of type ${type} is not supported here: text is.`, "unsupported_value");
    })
    .join("");
}

interface Call {
  readonly id?: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: unknown };
}

/** Arguments are an object for templates, and text for clients. */
function readCalls(value: unknown, place: string): readonly Call[] {
  if (!Array.isArray(value)) return refuse(place, `${place} should be a list.`);
  return value.map((call: unknown, i) => {
    const called = isObject(call) && isObject(call.function) ? call.function : undefined;
    if (!isObject(call) || typeof called?.name !== "string")
      return refuse(`${place}[${i}]`, `${place}[${i}] should be a call of a function with its name.`);
    const id = typeof call.id === "string" ? { id: call.id } : {};
    return { ...id, type: "function", function: { name: called.name, arguments: readArguments(called.arguments) } };
  });
}

function readArguments(text: unknown): unknown {
  if (typeof text !== "string") return text ?? {};
  try {
    return JSON.parse(text);
  } catch {
    // A model's own call may have been no JSON; it is shown to it as it was.
    return text;
  }
}

/** Definitions as templates take them, which is as they are. */
export function readTools(value: unknown): readonly Fields[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) return refuse("tools", "tools should be a list.");
  return value.map((tool: unknown, i) => {
    const place = `tools[${i}]`;
    if (
      !isObject(tool) ||
      tool.type !== "function" ||
      !isObject(tool.function) ||
      typeof tool.function.name !== "string"
    )
      return refuse(place, `${place} should be {"type": "function", "function": {"name": …}}.`);
    if (tool.function.strict === true)
      refuse(
        `${place}.function.strict`,
        "strict tools are not supported here: what a model writes is not constrained.",
      );
    return tool;
  });
}
