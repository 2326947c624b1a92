/**
 * Messages of any chat API to canonical turns. Roles get our names; content becomes text, its parts joined; tool calls,
 * tool results and thinking are taken out of content and kept in the chat-completions form, or left out. Shared by all
 * formats, since logs mix the shapes: a chat-completions log may hold Anthropic blocks and the other way around.
 */
import type { Message } from "../tokens/conversation.ts";
import type { FormatOptions } from "./format.ts";
import { damaged, isRecord, type JsonRecord, quoted, skipped } from "./row.ts";

const ROLES: ReadonlyMap<string, string> = new Map([
  ["user", "user"],
  ["human", "user"],
  ["assistant", "assistant"],
  ["ai", "assistant"],
  ["model", "assistant"],
  ["bot", "assistant"],
  ["gpt", "assistant"],
  ["chatgpt", "assistant"],
  ["system", "system"],
  ["developer", "system"],
  ["tool", "tool"],
  ["function", "tool"],
  ["observation", "tool"],
  ["function_response", "tool"],
  ["tool_result", "tool"],
]);

/** Our name of a role, whatever a logger called it. Throws where there is none that we know. */
function normalRole(role: unknown): string {
  if (typeof role !== "string") throw damaged("a message has no role");
  const known = ROLES.get(role) ?? ROLES.get(role.trim().toLowerCase());
  if (known === undefined) throw damaged(`unknown role ${quoted(role)}`);
  return known;
}

/** A weight must be a number that can scale a loss. */
export function checkWeight(weight: unknown, whose = "a message's"): void {
  if (weight === undefined || weight === null) return;
  if (typeof weight !== "number" || !(weight >= 0) || !Number.isFinite(weight))
    throw damaged(`${whose} weight is not a number of 0 or more`);
}

/** The canonical turns of one conversation, and what was left out of it. */
export interface Turns {
  readonly messages: Message[];
  /** Tool results left out. */
  toolTurns: number;
}

interface Draft {
  readonly texts: { text: string; isCited: boolean }[];
  readonly thoughts: string[];
  readonly calls: unknown[];
}

const newDraft = (): Draft => ({ texts: [], thoughts: [], calls: [] });

/** Appends what one raw message says to `out`: usually one turn, none or several where it holds tool results. */
export function readTurns(raw: unknown, options: FormatOptions, out: Turns): void {
  if (!isRecord(raw)) throw damaged("a message is not an object");
  const role = normalRole(raw.role ?? raw.from);
  checkWeight(raw.weight);
  const content = raw.content ?? raw.value;
  if (options.isVerbatim) {
    const { role: _role, from: _from, content: _content, value: _value, ...rest } = raw;
    out.messages.push({ role, content: contentText(content), ...rest });
  } else if (role === "tool") addToolResult(raw, content, options, out);
  else if (typeof content === "string" && !hasMore(raw)) push(role, content, raw, options, out);
  else addParts(role, raw, content, options, out);
}

const hasMore = (raw: JsonRecord): boolean =>
  raw.tool_calls != null ||
  raw.function_call != null ||
  raw.reasoning_content != null ||
  raw.reasoning != null ||
  raw.thinking != null ||
  raw.refusal != null;

function push(role: string, content: string, raw: JsonRecord, options: FormatOptions, out: Turns): void {
  const turn = spoken(role, content, options);
  out.messages.push(raw.weight == null ? turn : { ...turn, weight: raw.weight as number });
}

/** Logs of chat desks give all turns one role and begin the text with who speaks. */
function spoken(role: string, content: string, { rolePrefixes }: FormatOptions): Message {
  const found = rolePrefixes.find(({ prefix }) => content.startsWith(prefix));
  return found ? { role: found.role, content: content.slice(found.prefix.length).trimStart() } : { role, content };
}

function addToolResult(raw: JsonRecord, content: unknown, options: FormatOptions, out: Turns): void {
  if (!options.keepTools) {
    out.toolTurns += 1;
    return;
  }
  const id = raw.tool_call_id ?? raw.tool_use_id;
  const message: Message = { role: "tool", content: resultText(content) };
  out.messages.push({
    ...message,
    ...(typeof id === "string" ? { tool_call_id: id } : {}),
    ...(typeof raw.name === "string" ? { name: raw.name } : {}),
  });
}

/** What a tool gave back: text where it is text, its JSON otherwise. */
function resultText(content: unknown): string {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (Array.isArray(content) && content.every((part) => textOf(part) !== undefined)) return contentText(content);
  return JSON.stringify(content);
}

function addParts(role: string, raw: JsonRecord, content: unknown, options: FormatOptions, out: Turns): void {
  let draft = newDraft();
  for (const thought of [raw.reasoning_content, raw.reasoning, raw.thinking]) {
    if (typeof thought === "string" && thought !== "") draft.thoughts.push(thought);
  }
  for (const part of partsOf(content)) {
    if (isToolResult(part)) {
      draft = flush(role, raw, draft, options, out);
      addToolResult(part, part.content ?? part.output, options, out);
    } else addPart(part, draft);
  }
  if (typeof raw.refusal === "string" && draft.texts.length === 0)
    draft.texts.push({ text: raw.refusal, isCited: false });
  draft.calls.push(...callsOf(raw));
  // A message without any content still is a turn: the rules drop it as an empty one, and count it.
  flush(role, raw, draft, options, out, out.messages.length === 0 || !Array.isArray(content) || content.length === 0);
}

function flush(role: string, raw: JsonRecord, draft: Draft, options: FormatOptions, out: Turns, always = false): Draft {
  const isEmpty = draft.texts.length === 0 && draft.calls.length === 0 && draft.thoughts.length === 0;
  if (!isEmpty || always) {
    push(role, joinParts(draft.texts), raw, options, out);
    const message = out.messages.pop() as Message;
    out.messages.push({
      ...message,
      ...(options.keepThinking && draft.thoughts.length > 0 ? { reasoning_content: draft.thoughts.join("\n") } : {}),
      ...(options.keepTools && draft.calls.length > 0 ? { tool_calls: draft.calls } : {}),
    });
  }
  return newDraft();
}

function partsOf(content: unknown): readonly unknown[] {
  if (typeof content === "string") return [content];
  if (content === null || content === undefined) return [];
  if (Array.isArray(content)) return content;
  if (isRecord(content) && (typeof content.type === "string" || typeof content.text === "string")) return [content];
  throw damaged("content is neither text nor a list of parts");
}

const isToolResult = (part: unknown): part is JsonRecord =>
  isRecord(part) && typeof part.type === "string" && part.type.endsWith("tool_result");

function addPart(part: unknown, draft: Draft): void {
  const text = textOf(part);
  if (text !== undefined) {
    if (text !== "") draft.texts.push({ text, isCited: isCited(part) });
    return;
  }
  if (!isRecord(part)) throw damaged("a content part is not an object");
  const { type } = part;
  if (type === "thinking" || type === "reasoning") {
    const thought = part.thinking ?? part.text ?? part.reasoning;
    if (typeof thought === "string" && thought !== "") draft.thoughts.push(thought);
  } else if (type === "tool_use" || type === "server_tool_use" || type === "mcp_tool_use")
    draft.calls.push(callOf(part));
  else if (type !== "redacted_thinking") throw skipped(`content has a part of type ${quoted(type)}`);
}

/** Text of a part that is text, under the names of all APIs. */
function textOf(part: unknown): string | undefined {
  if (typeof part === "string") return part;
  if (!isRecord(part)) return undefined;
  if (part.type === "refusal") return typeof part.refusal === "string" ? part.refusal : undefined;
  if (part.type === "thinking" || part.type === "reasoning") return undefined;
  return typeof part.text === "string" ? part.text : undefined;
}

const isCited = (part: unknown): boolean =>
  isRecord(part) && Array.isArray(part.citations) && part.citations.length > 0;

/** Parts stand on lines of their own; those that a citation split in mid-sentence go together again. */
function joinParts(parts: readonly { text: string; isCited: boolean }[]): string {
  let text = parts[0]?.text ?? "";
  for (let i = 1; i < parts.length; i += 1) {
    const [before, part] = [parts[i - 1], parts[i]];
    text += (before?.isCited || part?.isCited ? "" : "\n") + part?.text;
  }
  return text;
}

/** Content as text: a string as it is, null as empty, text parts joined. Other parts cannot be trained on as text. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  const draft = newDraft();
  for (const part of partsOf(content)) {
    if (textOf(part) === undefined && isRecord(part)) throw skipped(`content has a part of type ${quoted(part.type)}`);
    addPart(part, draft);
  }
  return joinParts(draft.texts);
}

/** An Anthropic tool call in the chat-completions form. */
function callOf({ id, name, input }: JsonRecord): unknown {
  const argumentText = typeof input === "string" ? input : JSON.stringify(input ?? {});
  return { ...(typeof id === "string" ? { id } : {}), type: "function", function: { name, arguments: argumentText } };
}

function callsOf(raw: JsonRecord): readonly unknown[] {
  if (Array.isArray(raw.tool_calls)) return raw.tool_calls;
  return isRecord(raw.function_call) ? [{ type: "function", function: raw.function_call }] : [];
}
