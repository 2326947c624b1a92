/** The canonical row, why a line gives none, and the rules that every row must pass. */
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
  /** UTF-16 units from the start of the line, where the fault has a place. */
  readonly at: number;
  constructor(kind: Rejection["kind"], reason: string, at = 0) {
    super(reason);
    this.kind = kind;
    this.reason = reason;
    this.at = at;
  }
}

export const damaged = (reason: string, at = 0): RejectedRow => new RejectedRow("damaged", reason, at);
export const skipped = (reason: string): RejectedRow => new RejectedRow("skipped", reason);

export type JsonRecord = Readonly<Record<string, unknown>>;

export function isRecord(value: unknown): value is JsonRecord {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A name from a log, short enough for a reason. */
export const quoted = (name: unknown): string => JSON.stringify(String(name ?? "?").slice(0, 40));

export interface RowRules {
  /** Shorter conversations are left out. */
  readonly min_messages: number;
}

/** Whether a turn has neither text nor tool calls nor thinking. */
export const saysNothing = (message: Message): boolean =>
  typeof message.content === "string" &&
  message.content.trim() === "" &&
  !(Array.isArray(message.tool_calls) && message.tool_calls.length > 0) &&
  !message.reasoning_content;

/** Drops empty turns and checks what every row must hold. `emptyTurns` counts those dropped. */
export function applyRules<R extends Row>(row: R, rules: RowRules): { row: R; emptyTurns: number } {
  const messages = row.messages.some(saysNothing) ? row.messages.filter((m) => !saysNothing(m)) : row.messages;
  if (messages.length < rules.min_messages) throw skipped(`fewer than ${rules.min_messages} messages`);
  if (messages.at(-1)?.role !== "assistant") throw skipped("does not end with an assistant turn");
  return { row: { ...row, messages }, emptyTurns: row.messages.length - messages.length };
}
