/** The canonical row, and what importers share to get there: role names, text of content, and the rules for a row. */
import type { Conversation, Message } from "../tokens/conversation.ts";

/** One line of `rows.jsonl`. */
export type Row = Conversation;

/** Why a line gave no row. `damaged`: it is not what the format says; `skipped`: a rule leaves it out. */
export interface Rejection {
  readonly kind: "damaged" | "skipped";
  /** Short and groupable; no text of the row except names of roles and keys. */
  readonly reason: string;
}

/** Thrown while a line is read; becomes a counted rejection. */
export class RejectedRow extends Error implements Rejection {
  readonly kind: Rejection["kind"];
  readonly reason: string;
  constructor(kind: Rejection["kind"], reason: string) {
    super(reason);
    this.kind = kind;
    this.reason = reason;
  }
}

export const damaged = (reason: string): RejectedRow => new RejectedRow("damaged", reason);
export const skipped = (reason: string): RejectedRow => new RejectedRow("skipped", reason);

export type JsonRecord = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

const ROLES: Readonly<Record<string, string>> = {
  user: "user",
  human: "user",
  assistant: "assistant",
  ai: "assistant",
  model: "assistant",
  bot: "assistant",
  gpt: "assistant",
  chatgpt: "assistant",
  system: "system",
  developer: "system",
  tool: "tool",
  function: "tool",
};

/** Our name of a role, whatever a logger called it. */
export function normalRole(role: unknown): string {
  if (typeof role !== "string") throw damaged("a message has no role");
  const known = ROLES[role.trim().toLowerCase()];
  if (known === undefined) throw damaged(`unknown role ${JSON.stringify(role.slice(0, 40))}`);
  return known;
}

/** Content as text: a string as it is, null as empty, text parts joined. Other parts cannot be trained on as text. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (content === null || content === undefined) return "";
  if (!Array.isArray(content)) throw damaged("content is neither text nor a list of parts");
  return content.map(partText).join("");
}

function partText(part: unknown): string {
  if (typeof part === "string") return part;
  if (!isRecord(part)) throw damaged("a content part is not an object");
  if (typeof part.text === "string") return part.text;
  throw skipped(`content has a part of type ${JSON.stringify(String(part.type ?? "?").slice(0, 40))}`);
}

export interface RowRules {
  /** Shorter conversations are left out. */
  readonly min_messages: number;
}

const saysNothing = (message: Message): boolean =>
  typeof message.content === "string" &&
  message.content.trim() === "" &&
  !(Array.isArray(message.tool_calls) && message.tool_calls.length > 0) &&
  !message.reasoning_content;

/** Drops empty turns and checks what every row must hold. `emptyTurns` counts those dropped. */
export function applyRules(row: Row, rules: RowRules): { row: Row; emptyTurns: number } {
  const messages = row.messages.filter((m) => !saysNothing(m));
  if (messages.length < rules.min_messages) throw skipped(`fewer than ${rules.min_messages} messages`);
  if (messages.at(-1)?.role !== "assistant") throw skipped("does not end with an assistant turn");
  return { row: { ...row, messages }, emptyTurns: row.messages.length - messages.length };
}
