/**
 * LangSmith exports: one run a line, `inputs` and `outputs` in LangChain's serialised messages or in the provider's own
 * form. Feedback becomes the row's score: the mean of its numeric scores, of one key where `feedback_stats` has several.
 */
import type { Format, FormatOptions, FormatResult } from "../format.ts";
import { answered, isTurn, isTurnList, unwrapped } from "../logs.ts";
import { damaged, isRecord, type JsonRecord, skipped } from "../row.ts";
import { anthropicFormat } from "./anthropic.ts";
import { openaiFormat } from "./openai.ts";

const MARKS = ["run_type", "dotted_order", "feedback_stats", "session_id", "trace_id", "parent_run_id"];
/** LangChain's class names, whether serialised (`id`) or short (`type`). */
const CLASSES: Readonly<Record<string, string>> = {
  humanmessage: "user",
  human: "user",
  aimessage: "assistant",
  aimessagechunk: "assistant",
  ai: "assistant",
  systemmessage: "system",
  system: "system",
  toolmessage: "tool",
  tool: "tool",
  functionmessage: "tool",
  function: "tool",
  chatmessage: "chat",
  chat: "chat",
};

/** A LangChain message in the chat-completions form; undefined for what is none. */
function chainMessage(value: unknown): unknown {
  if (!isRecord(value)) return undefined;
  if (isTurn(value)) return value;
  const name = Array.isArray(value.id) ? value.id.at(-1) : value.type;
  const role = typeof name === "string" ? CLASSES[name.toLowerCase()] : undefined;
  if (role === undefined) return undefined;
  const body = isRecord(value.kwargs) ? value.kwargs : isRecord(value.data) ? value.data : value;
  const extra = isRecord(body.additional_kwargs) ? body.additional_kwargs : {};
  const calls = callsOf(body, extra);
  return {
    role: role === "chat" ? body.role : role,
    content: calls ? withoutCalls(body.content) : body.content,
    ...(calls ? { tool_calls: calls } : {}),
    ...(typeof extra.reasoning_content === "string" ? { reasoning_content: extra.reasoning_content } : {}),
    ...(typeof body.tool_call_id === "string" ? { tool_call_id: body.tool_call_id } : {}),
    ...(typeof body.name === "string" ? { name: body.name } : {}),
  };
}

/** Calls in the provider's form, or LangChain's `{name, args, id}`. */
function callsOf(body: JsonRecord, extra: JsonRecord): unknown[] | undefined {
  if (Array.isArray(extra.tool_calls) && extra.tool_calls.length > 0) return extra.tool_calls;
  if (!Array.isArray(body.tool_calls) || body.tool_calls.length === 0) return undefined;
  return (body.tool_calls as unknown[]).map((call) => {
    if (!isRecord(call) || isRecord(call.function)) return call;
    return { id: call.id, type: "function", function: { name: call.name, arguments: JSON.stringify(call.args ?? {}) } };
  });
}

/** LangChain lists a call both as a block and under `tool_calls`. */
function withoutCalls(content: unknown): unknown {
  return Array.isArray(content) ? content.filter((part) => !isRecord(part) || part.type !== "tool_use") : content;
}

/** The messages of one side. LangChain nests a list for each prompt of a batch of one: `messages: [[…]]`. */
function messagesIn(side: unknown): readonly unknown[] | undefined {
  const found = unwrapped(side);
  if (Array.isArray(found)) {
    const list = found.length === 1 && Array.isArray(found[0]) ? (found[0] as unknown[]) : found;
    const messages = list.map(chainMessage);
    return messages.length > 0 && messages.every((m) => m !== undefined) ? messages : undefined;
  }
  if (!isRecord(found)) return undefined;
  for (const key of ["messages", "input", "chat_history", "prompt"]) {
    const inner = Array.isArray(found[key]) ? messagesIn(found[key]) : undefined;
    if (inner) return inner;
  }
  return undefined;
}

/** The answer: `generations` of a model run, messages of a chain, a message, the provider's response, or plain text. */
function answerIn(outputs: unknown): readonly (readonly unknown[])[] {
  const found = unwrapped(outputs);
  if (typeof found === "string") return [[{ role: "assistant", content: found }]];
  const single = chainMessage(found);
  if (single !== undefined) return [[single]];
  if (!isRecord(found)) return [];
  if (Array.isArray(found.generations)) return (found.generations.flat() as unknown[]).map(generation);
  const message = chainMessage(found.message);
  if (message !== undefined) return [[message]];
  const list = messagesIn(found);
  if (list) return [list];
  for (const key of ["output", "answer", "text", "content", "result"]) {
    if (typeof found[key] === "string" || isRecord(found[key])) return answerIn(found[key]);
  }
  return [];
}

function generation(value: unknown): readonly unknown[] {
  if (!isRecord(value)) throw damaged("a generation is not an object");
  const message = chainMessage(value.message);
  return [message ?? { role: "assistant", content: value.text }];
}

/** Mean of what people and graders gave; booleans count as 0 and 1. */
function feedbackScore(run: JsonRecord): number | undefined {
  const given = [...statScores(run.feedback_stats), ...listScores(run.feedback ?? run.feedbacks)];
  return given.length === 0 ? undefined : given.reduce((sum, score) => sum + score, 0) / given.length;
}

function statScores(stats: unknown): number[] {
  if (!isRecord(stats)) return [];
  return Object.values(stats).flatMap((stat) => numberOf(isRecord(stat) ? (stat.avg ?? stat.mean) : stat));
}

function listScores(list: unknown): number[] {
  return Array.isArray(list) ? (list as unknown[]).flatMap((item) => numberOf(isRecord(item) ? item.score : item)) : [];
}

const numberOf = (value: unknown): number[] => {
  if (typeof value === "boolean") return [value ? 1 : 0];
  return typeof value === "number" && Number.isFinite(value) ? [value] : [];
};

function read(value: unknown, options: FormatOptions): FormatResult {
  if (!isRecord(value)) throw damaged("not a run");
  if (typeof value.error === "string" && value.error !== "") throw skipped("the request failed");
  if (value.run_type === "tool" || value.run_type === "retriever") throw skipped("a run of a tool, not of a model");
  const score = feedbackScore(value);
  const { rows, toolTurns } = readSides(value, options);
  return { rows: score === undefined ? rows : rows.map((row) => ({ ...row, score })), toolTurns };
}

function readSides(value: JsonRecord, options: FormatOptions): FormatResult {
  const [inputs, outputs] = [unwrapped(value.inputs), unwrapped(value.outputs)];
  const pair = { request: inputs, response: outputs };
  if (anthropicFormat.detects(pair)) return anthropicFormat.read(pair, options);
  if (isRecord(outputs) && Array.isArray(outputs.choices)) return openaiFormat.read(pair, options);
  const prompt = messagesIn(inputs) ?? textPrompt(inputs);
  if (!prompt) throw damaged("inputs hold no messages");
  const answers = answerIn(outputs);
  const tools =
    isRecord(value.extra) && isRecord(value.extra.invocation_params) ? value.extra.invocation_params.tools : undefined;
  // A chain's outputs often are the whole conversation again, with the answer at its end.
  const isWhole = answers.length === 1 && startsWith(answers[0] as readonly unknown[], prompt);
  return answered(isWhole ? [] : prompt, answers, tools, options);
}

/** A chain's question: one text field. */
function textPrompt(inputs: unknown): readonly unknown[] | undefined {
  if (typeof inputs === "string") return [{ role: "user", content: inputs }];
  if (!isRecord(inputs)) return undefined;
  for (const key of ["input", "question", "query", "text", "prompt"]) {
    if (typeof inputs[key] === "string") return [{ role: "user", content: inputs[key] }];
  }
  return undefined;
}

function startsWith(list: readonly unknown[], prefix: readonly unknown[]): boolean {
  return (
    list.length > prefix.length && prefix.every((message, i) => JSON.stringify(message) === JSON.stringify(list[i]))
  );
}

export const langsmithFormat: Format = {
  name: "langsmith",
  isLog: true,
  expected: '{"run_type": "llm", "inputs": {"messages": […]}, "outputs": {"generations": […]}, "feedback_stats": {…}}',
  detects: (value) =>
    isRecord(value) &&
    (isRecord(unwrapped(value.inputs)) || isTurnList(unwrapped(value.inputs))) &&
    (MARKS.some((mark) => mark in value) || messagesIn(value.inputs)?.some((m) => !isTurn(m)) === true),
  read,
};
