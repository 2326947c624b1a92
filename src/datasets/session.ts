/**
 * Files that are one session of an agent, a line an event: no line is a conversation, and a session may hold several (what
 * was taken back, what was asked of a helper, what follows a summary). Lines give events, which wait until the file's end.
 */
import type { JsonRecord } from "./row.ts";

/** What is needed of a line to put sessions together. Plain data: it may come from another thread. */
export type SessionEvent = JsonRecord;

/** A conversation of a session, as a line on which it stood whole. */
export interface SessionConversation {
  /** For conditions: where and by what it was held. */
  readonly metadata: JsonRecord;
  readonly messages: readonly unknown[];
  /** Number of the event that ends it. */
  readonly last: number;
}

/** How lines of a format become conversations. */
export interface SessionRules {
  /** Undefined for a line that says nothing. Throws `RejectedRow` for one that is not what the format says. */
  event(value: unknown): SessionEvent | undefined;
  /** The conversations of all events of one file, in the order of their ends. */
  conversations(events: readonly SessionEvent[]): readonly SessionConversation[];
}

/** The fields of records that say something, the later ones first. */
export function metadataOf(records: readonly JsonRecord[], names: readonly string[]): JsonRecord {
  const found: Record<string, unknown> = {};
  for (const name of names) {
    const value = records.findLast((record) => record[name] !== undefined && record[name] !== null)?.[name];
    if (value !== undefined) found[name] = value;
  }
  return found;
}
