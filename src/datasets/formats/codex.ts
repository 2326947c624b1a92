/**
 * Session files of Codex (`~/.codex/sessions/<year>/<month>/<day>/rollout-….jsonl`): a line of metadata, then items of the
 * Responses API among events. Older ones hold the items without an envelope. Where a summary replaced what went before, or
 * turns were taken back, the conversation until then is one, and what follows another.
 */
import type { Format } from "../format.ts";
import { candidateOf } from "../logs.ts";
import { itemsToMessages } from "../responses.ts";
import { damaged, isRecord, type JsonRecord } from "../row.ts";
import { metadataOf, type SessionConversation, type SessionEvent, type SessionRules } from "../session.ts";

const LINE_TYPES = /^(session_meta|response_item|event_msg|turn_context|compacted)$/;
const METADATA = ["id", "cwd", "cli_version", "originator", "model_provider"];

/** Of the first line of files without envelopes. */
const isOldMeta = (value: JsonRecord): boolean =>
  value.type === undefined && typeof value.id === "string" && typeof value.timestamp === "string";

function event(value: unknown): SessionEvent | undefined {
  if (!isRecord(value)) throw damaged("no object");
  const { type, payload } = value;
  if (isOldMeta(value)) return { meta: metadataOf([value], METADATA) };
  if (isRecord(payload)) return enveloped(type, payload);
  if (value.record_type !== undefined) return undefined;
  if (typeof type !== "string") throw damaged("no type of a session's line");
  return { item: value };
}

function enveloped(type: unknown, payload: JsonRecord): SessionEvent | undefined {
  switch (type) {
    case "session_meta": {
      const instructions = isRecord(payload.base_instructions) ? payload.base_instructions.text : undefined;
      return { meta: metadataOf([payload], METADATA), ...(typeof instructions === "string" ? { instructions } : {}) };
    }
    case "turn_context":
      return { context: metadataOf([payload], ["cwd", "model"]) };
    case "response_item":
      return { item: payload };
    case "compacted":
      return { replaced: replacementOf(payload) };
    case "event_msg":
      return payload.type === "thread_rolled_back" ? { takenBack: Number(payload.num_turns ?? 1) } : undefined;
    default:
      return undefined;
  }
}

/** What the model was shown from then on: a history, or the summary alone. */
const replacementOf = ({ replacement_history, message }: JsonRecord): readonly unknown[] =>
  Array.isArray(replacement_history)
    ? replacement_history
    : [{ type: "message", role: "user", content: message ?? "" }];

/** A call of the shell by its own kind of item, as a call of a function. */
const asCall = (item: unknown): unknown =>
  isRecord(item) && item.type === "local_shell_call"
    ? {
        type: "function_call",
        call_id: item.call_id,
        name: "local_shell",
        arguments: JSON.stringify(item.action ?? {}),
      }
    : item;

const isAnswer = (item: unknown): boolean => isRecord(item) && item.role === "assistant";

/** What the program says in the user's name. */
const NO_QUESTION =
  /^\s*(<(environment_context|user_instructions|user_shell_command|turn_aborted|skill)\b|# AGENTS\.md)/;

function isQuestion(item: unknown): boolean {
  if (!isRecord(item) || item.role !== "user") return false;
  const first = Array.isArray(item.content) ? (item.content as unknown[])[0] : item.content;
  const text = isRecord(first) ? first.text : first;
  return typeof text !== "string" || !NO_QUESTION.test(text);
}

/** Items without the last so many turns, each of which begins with a question. */
function withoutTurns(items: readonly unknown[], count: number): readonly unknown[] {
  let end = items.length;
  for (let left = count; left > 0 && end > 0; left -= 1)
    end = Math.max(
      0,
      items.findLastIndex((item, i) => i < end && isQuestion(item)),
    );
  return items.slice(0, end);
}

function conversations(events: readonly SessionEvent[]): readonly SessionConversation[] {
  const found: SessionConversation[] = [];
  let metadata: JsonRecord = {};
  let system: readonly unknown[] = [];
  let items: unknown[] = [];
  /** So many of the items were in a conversation before. */
  let known = 0;
  const add = (some: readonly unknown[], last: number): void => {
    found.push({ metadata, messages: [...system, ...itemsToMessages(some.map(asCall))], last });
  };
  const end = (last: number): void => {
    // Nothing is to be learned from a question that nobody answered.
    const answer = items.findLastIndex(isAnswer);
    if (answer >= known) add(items.slice(0, answer + 1), last);
  };
  for (const [i, { meta, context, instructions, item, replaced, takenBack }] of events.entries()) {
    // A session that goes on from another repeats that one's first line after its own.
    if (isRecord(meta)) metadata = { ...meta, ...metadata };
    if (isRecord(context)) metadata = { ...metadata, ...context };
    if (typeof instructions === "string" && system.length === 0) system = [{ role: "system", content: instructions }];
    if (isRecord(item)) items.push(item);
    else if (Array.isArray(replaced)) {
      end(i);
      items = [...(replaced as unknown[])];
      known = items.length;
    } else if (typeof takenBack === "number") {
      end(i);
      items = [...withoutTurns(items, takenBack)];
      known = items.length;
    }
  }
  end(events.length - 1);
  if (found.length === 0 && items.length > 0) add(items, events.length - 1);
  return found;
}

const session: SessionRules = { event, conversations };

export const codexFormat: Format = {
  name: "codex",
  isLog: true,
  expected: '{"type": "response_item", "payload": {"type": "message", "role": "user", "content": […]}}',
  detects: (value) =>
    isRecord(value) &&
    ((typeof value.type === "string" && LINE_TYPES.test(value.type) && isRecord(value.payload)) ||
      (isOldMeta(value) && ("instructions" in value || "git" in value))),
  read(value, options) {
    const { messages } = value as SessionConversation;
    const { row, toolTurns } = candidateOf(messages, undefined, options);
    return { rows: [row], toolTurns };
  },
  session,
};
