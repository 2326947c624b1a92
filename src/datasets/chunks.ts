/** Streamed answers put together again: chat-completions chunks, Anthropic events, Responses events; as lists or as server-sent text. */
import { isRecord, type JsonRecord, skipped } from "./row.ts";

/** The values of `data:` lines of server-sent events; undefined where the text is none. */
export function serverSentValues(text: string): readonly unknown[] | undefined {
  if (!/^\s*(data|event|id|:)/.test(text) || !text.includes("data:")) return undefined;
  const values: unknown[] = [];
  for (const line of text.split(/\r?\n/)) {
    const data = /^data:\s?(.*)$/s.exec(line)?.[1];
    if (data === undefined || data === "[DONE]") continue;
    try {
      values.push(JSON.parse(data));
    } catch {
      return undefined;
    }
  }
  return values.length > 0 ? values : undefined;
}

const isChunk = (value: unknown): value is JsonRecord =>
  isRecord(value) &&
  Array.isArray(value.choices) &&
  (value.object === "chat.completion.chunk" || value.choices.some((c) => isRecord(c) && "delta" in c));

const isEvent = (value: unknown): value is JsonRecord =>
  isRecord(value) &&
  typeof value.type === "string" &&
  /^(message_(start|delta|stop)|content_block_(start|delta|stop)|response\.)/.test(value.type);

export const isChunkList = (value: unknown): value is readonly JsonRecord[] =>
  Array.isArray(value) && value.some((v) => isChunk(v) || isEvent(v));

/** The whole response that a list of chunks or events stands for, in the form that the API gives without streaming. */
export function assemble(chunks: readonly unknown[]): JsonRecord {
  for (const chunk of chunks) {
    if (isRecord(chunk) && chunk.type === "response.completed" && isRecord(chunk.response)) return chunk.response;
  }
  if (chunks.some(isEvent)) return assembleEvents(chunks.filter(isRecord));
  return assembleChunks(chunks.filter(isChunk));
}

interface PartialChoice {
  content: string;
  reasoning: string;
  refusal: string;
  readonly calls: Map<number, { id?: string; name: string; arguments: string }>;
}

function assembleChunks(chunks: readonly JsonRecord[]): JsonRecord {
  const choices = new Map<number, PartialChoice>();
  for (const chunk of chunks) {
    for (const choice of chunk.choices as readonly unknown[]) {
      if (!isRecord(choice) || !isRecord(choice.delta)) continue;
      const index = typeof choice.index === "number" ? choice.index : 0;
      const found = choices.get(index) ?? { content: "", reasoning: "", refusal: "", calls: new Map() };
      choices.set(index, found);
      addDelta(found, choice.delta);
    }
  }
  const inOrder = [...choices].sort(([a], [b]) => a - b);
  return { choices: inOrder.map(([index, choice]) => ({ index, message: messageOf(choice) })) };
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

function addDelta(choice: PartialChoice, delta: JsonRecord): void {
  choice.content += text(delta.content);
  choice.reasoning += text(delta.reasoning_content ?? delta.reasoning);
  choice.refusal += text(delta.refusal);
  for (const call of Array.isArray(delta.tool_calls) ? (delta.tool_calls as readonly unknown[]) : []) {
    if (!isRecord(call)) continue;
    const index = typeof call.index === "number" ? call.index : 0;
    const found = choice.calls.get(index) ?? { name: "", arguments: "" };
    choice.calls.set(index, found);
    if (typeof call.id === "string") found.id = call.id;
    if (!isRecord(call.function)) continue;
    found.name += text(call.function.name);
    found.arguments += text(call.function.arguments);
  }
}

function messageOf({ content, reasoning, refusal, calls }: PartialChoice): JsonRecord {
  const list = [...calls.values()].map(({ id, name, arguments: args }) => ({
    ...(id === undefined ? {} : { id }),
    type: "function",
    function: { name, arguments: args },
  }));
  return {
    role: "assistant",
    content,
    ...(reasoning ? { reasoning_content: reasoning } : {}),
    ...(refusal ? { refusal } : {}),
    ...(list.length > 0 ? { tool_calls: list } : {}),
  };
}

/** Anthropic's events: blocks begin, grow by deltas, and end. */
function assembleEvents(events: readonly JsonRecord[]): JsonRecord {
  const blocks = new Map<number, Record<string, unknown>>();
  for (const event of events) {
    if (event.type === "error") throw skipped("the request failed");
    const index = typeof event.index === "number" ? event.index : 0;
    if (event.type === "content_block_start" && isRecord(event.content_block))
      blocks.set(index, { ...event.content_block });
    else if (event.type === "content_block_delta" && isRecord(event.delta)) addBlockDelta(blocks, index, event.delta);
  }
  const content = [...blocks]
    .sort(([a], [b]) => a - b)
    .map(([, { partialInput, ...block }]) => {
      return typeof partialInput === "string" ? { ...block, input: partialInput } : block;
    });
  return { type: "message", role: "assistant", content };
}

function addBlockDelta(blocks: Map<number, Record<string, unknown>>, index: number, delta: JsonRecord): void {
  const block = blocks.get(index) ?? { type: "text", text: "" };
  blocks.set(index, block);
  if (delta.type === "text_delta") block.text = text(block.text) + text(delta.text);
  else if (delta.type === "thinking_delta") block.thinking = text(block.thinking) + text(delta.thinking);
  else if (delta.type === "input_json_delta") block.partialInput = text(block.partialInput) + text(delta.partial_json);
  else if (delta.type === "citations_delta")
    block.citations = [...(Array.isArray(block.citations) ? (block.citations as unknown[]) : []), delta.citation];
}
