/** Rows that already are lists of messages: ours, and the `conversations` form of from/value pairs. */
import type { Message } from "../../tokens/conversation.ts";
import type { Format } from "../format.ts";
import { contentText, damaged, isRecord, type JsonRecord, normalRole } from "../row.ts";

/** The list of turns, under whichever name; undefined if there is none. */
function turnsOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (!isRecord(value)) return undefined;
  const list = value.messages ?? value.conversations ?? value.conversation;
  return Array.isArray(list) ? list : undefined;
}

function readTurn(turn: unknown): Message {
  if (!isRecord(turn)) throw damaged("a message is not an object");
  const { role, from, content, value, ...rest } = turn;
  checkWeight(rest);
  return { role: normalRole(role ?? from), content: contentText(content ?? value), ...rest };
}

/** A weight must be a number that can scale a loss. */
export function checkWeight(message: JsonRecord): void {
  const { weight } = message;
  if (weight === undefined) return;
  if (typeof weight !== "number" || !(weight >= 0)) throw damaged("a message's weight is not a number of 0 or more");
}

const isTurn = (turn: unknown) => isRecord(turn) && ("role" in turn || "from" in turn);

export const messagesFormat: Format = {
  name: "messages",
  expected: '{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}',
  detects: (value) => turnsOf(value)?.some(isTurn) ?? false,
  read(value) {
    const turns = turnsOf(value);
    if (!turns) throw damaged('no list under "messages"');
    const tools = isRecord(value) && Array.isArray(value.tools) ? { tools: value.tools } : {};
    return { rows: [{ messages: turns.map(readTurn), ...tools }], toolTurns: 0 };
  },
};
