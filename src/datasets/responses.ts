/** Items of the Responses API as chat messages: what belongs to one turn of the model goes into one message. */
import { isRecord, type JsonRecord } from "./row.ts";

const ITEM_TYPES = /^(message|reasoning|function_call|function_call_output|custom_tool_call|custom_tool_call_output)$/;

/** Whether a list holds Responses items and not chat messages: at least one has an item's type. */
export const isItemList = (value: unknown): value is readonly unknown[] =>
  Array.isArray(value) && value.some((v) => isRecord(v) && typeof v.type === "string" && ITEM_TYPES.test(v.type));

interface OpenTurn {
  readonly content: unknown[];
  readonly thoughts: string[];
  readonly calls: unknown[];
}

/** Chat messages with the same meaning, in order. Calls of hosted tools (search, code) stand for nothing a model said. */
export function itemsToMessages(items: readonly unknown[]): unknown[] {
  const messages: unknown[] = [];
  let open: OpenTurn | undefined;
  const close = (): void => {
    if (!open) return;
    const { content, thoughts, calls } = open;
    messages.push({
      role: "assistant",
      content,
      ...(thoughts.length > 0 ? { reasoning_content: thoughts.join("\n") } : {}),
      ...(calls.length > 0 ? { tool_calls: calls } : {}),
    });
    open = undefined;
  };
  const turn = (): OpenTurn => {
    open ??= { content: [], thoughts: [], calls: [] };
    return open;
  };
  for (const item of items) {
    if (!isRecord(item)) messages.push(item);
    else if (item.type === "reasoning") turn().thoughts.push(...thoughtsOf(item));
    else if (item.type === "function_call" || item.type === "custom_tool_call") turn().calls.push(callOf(item));
    else if (item.type === "function_call_output" || item.type === "custom_tool_call_output") {
      close();
      messages.push({ role: "tool", tool_call_id: item.call_id, content: item.output });
    } else if (item.role === "assistant") {
      if (open && open.content.length > 0) close();
      turn().content.push(...(Array.isArray(item.content) ? (item.content as unknown[]) : [item.content ?? ""]));
    } else if (item.role !== undefined) {
      close();
      messages.push(item);
    }
  }
  close();
  return messages;
}

function thoughtsOf({ summary, content }: JsonRecord): string[] {
  const parts = [...(Array.isArray(content) ? content : []), ...(Array.isArray(summary) ? summary : [])] as unknown[];
  return parts.flatMap((part) => (isRecord(part) && typeof part.text === "string" ? [part.text] : []));
}

const callOf = ({ call_id, name, arguments: args, input }: JsonRecord): unknown => ({
  ...(typeof call_id === "string" ? { id: call_id } : {}),
  type: "function",
  function: { name, arguments: args ?? input ?? "" },
});
