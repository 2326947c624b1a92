/**
 * Session files of Claude Code (`~/.claude/projects/<folder>/<session>.jsonl`). Every line names the line before it, so a
 * file is a tree: a question that was asked anew, a helper's own conversation and what follows a summary are branches or
 * roots of their own. An answer's blocks stand on lines of their own with one `message.id`, and results of tools that ran
 * at once hang each on the line of its call.
 */
import type { Format } from "../format.ts";
import { candidateOf } from "../logs.ts";
import { damaged, isRecord, type JsonRecord } from "../row.ts";
import { metadataOf, type SessionConversation, type SessionEvent, type SessionRules } from "../session.ts";

const LINE_TYPES =
  /^(user|assistant|system|summary|progress|attachment|file-history-snapshot|queue-operation|permission-mode|custom-title|ai-title|last-prompt|mode|agent-name|pr-link)$/;
const METADATA = ["sessionId", "cwd", "gitBranch", "version", "isSidechain", "agentId"];

function event(value: unknown): SessionEvent | undefined {
  if (!isRecord(value) || typeof value.type !== "string") throw damaged("no type of a session's line");
  const { uuid, parentUuid, type, message } = value;
  if (typeof uuid !== "string") return undefined;
  const link = { uuid, parent: typeof parentUuid === "string" ? parentUuid : undefined };
  if (type !== "user" && type !== "assistant") return link;
  if (!isRecord(message)) throw damaged('no object under "message"');
  // What the program itself answers, when a request failed, is no answer of the model.
  if (message.model === "<synthetic>" || value.isApiErrorMessage === true) return link;
  const { id, role, content, model } = message;
  return { ...link, message: { id, role: role ?? type, content }, about: { ...metadataOf([value], METADATA), model } };
}

interface Node {
  readonly event: SessionEvent;
  readonly parent: number | undefined;
}

function nodesOf(events: readonly SessionEvent[]): Node[] {
  const numbers = new Map<unknown, number>();
  return events.map((line, i) => {
    // What is written once more says nothing, and what goes on from it goes on from where it stands first.
    if (numbers.has(line.uuid)) return { event: {}, parent: undefined };
    numbers.set(line.uuid, i);
    return { event: line, parent: numbers.get(line.parent) };
  });
}

const isAnswer = (node: Node): boolean => messageOf(node)?.role === "assistant";

const messageOf = ({ event: line }: Node): JsonRecord | undefined =>
  isRecord(line.message) ? line.message : undefined;

/** Whether a message is nothing but results of tools. */
const isResults = (message: JsonRecord): boolean =>
  Array.isArray(message.content) &&
  message.content.length > 0 &&
  message.content.every((part) => isRecord(part) && part.type === "tool_result");

/** Numbers of the lines with messages that lead to a line, with what hangs beside the way: other blocks of an answer, results of tools. */
function wayTo(last: number, nodes: readonly Node[], children: readonly (readonly number[])[]): number[] {
  const taken = new Set<number>();
  for (let at: number | undefined = last; at !== undefined; at = nodes[at]?.parent) taken.add(at);
  const answers = new Set(
    [...taken].map((i) => messageOf(nodes[i] as Node)?.id).filter((id) => typeof id === "string"),
  );
  // A set gives what is added while it is gone through.
  for (const i of taken) {
    for (const child of children[i] ?? []) {
      const message = messageOf(nodes[child] as Node);
      // Between a call and its result there may be lines of the program.
      if (!message || isResults(message) || answers.has(message.id as string)) taken.add(child);
    }
  }
  return [...taken].filter((i) => messageOf(nodes[i] as Node)).sort((a, b) => a - b);
}

/** Messages of lines, an answer's blocks together again. */
function joined(lines: readonly Node[]): unknown[] {
  const messages: { role: unknown; content: unknown }[] = [];
  const answers = new Map<string, unknown[]>();
  for (const line of lines) {
    const { id, role, content } = messageOf(line) as JsonRecord;
    const blocks = Array.isArray(content) ? [...(content as unknown[])] : undefined;
    const before = typeof id === "string" ? answers.get(id) : undefined;
    if (before && blocks) before.push(...blocks);
    else {
      if (typeof id === "string" && blocks) answers.set(id, blocks);
      messages.push({ role, content: blocks ?? content });
    }
  }
  return messages;
}

function conversations(events: readonly SessionEvent[]): readonly SessionConversation[] {
  const nodes = nodesOf(events);
  const children: number[][] = nodes.map(() => []);
  for (const [i, { parent }] of nodes.entries()) if (parent !== undefined) children[parent]?.push(i);
  const known = new Set<number>();
  const found: SessionConversation[] = [];
  const add = (way: readonly number[], last: number): void => {
    const lines = way.map((i) => nodes[i] as Node);
    const abouts = lines.map((line) => line.event.about as JsonRecord);
    found.unshift({ metadata: metadataOf(abouts, [...METADATA, "model"]), messages: joined(lines), last });
  };
  let unanswered: readonly number[] = [];
  // The latest way of a session takes along what hangs beside it, so that those lines begin no conversation of their own.
  for (let last = nodes.length - 1; last >= 0; last -= 1) {
    if (known.has(last) || !messageOf(nodes[last] as Node)) continue;
    const way = wayTo(last, nodes, children);
    // Nothing is to be learned from a question that nobody answered.
    const answer = way.findLastIndex((i) => isAnswer(nodes[i] as Node));
    if (answer < 0) unanswered = way;
    else if (!known.has(way[answer] as number)) add(way.slice(0, answer + 1), last);
    for (const i of way) known.add(i);
  }
  if (found.length === 0 && unanswered.length > 0) add(unanswered, unanswered.at(-1) as number);
  return found;
}

const session: SessionRules = { event, conversations };

export const claudeCodeFormat: Format = {
  name: "claude-code",
  isLog: true,
  expected:
    '{"type": "user", "uuid": "…", "parentUuid": null, "sessionId": "…", "message": {"role": "user", "content": "…"}}',
  detects: (value) =>
    isRecord(value) &&
    typeof value.type === "string" &&
    LINE_TYPES.test(value.type) &&
    (typeof value.sessionId === "string" || typeof value.leafUuid === "string" || "parentUuid" in value),
  read(value, options) {
    const { messages } = value as SessionConversation;
    const { row, toolTurns } = candidateOf(messages, undefined, options);
    return { rows: [row], toolTurns };
  },
  session,
};
