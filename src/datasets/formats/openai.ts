/**
 * Dumps of OpenAI's APIs: chat-completions requests, responses and pairs of both under the names that loggers give them,
 * streamed or whole; batch files; fine-tuning files; Responses API items. A response's message follows its request's.
 */
import { assemble, isChunkList, serverSentValues } from "../chunks.ts";
import type { Format, FormatOptions, FormatResult, Half } from "../format.ts";
import {
  answered,
  checkSucceeded,
  DEPTH,
  isTurn,
  isTurnList,
  REQUEST_KEYS,
  RESPONSE_KEYS,
  toolsOf,
  unwrapped,
} from "../logs.ts";
import { isItemList, itemsToMessages } from "../responses.ts";
import { damaged, isRecord, type JsonRecord } from "../row.ts";

interface Prompt {
  readonly messages: readonly unknown[];
  readonly body: JsonRecord;
}

function findPrompt(value: unknown, depth = DEPTH): Prompt | undefined {
  const found = unwrapped(value);
  if (isItemList(found)) return { messages: itemsToMessages(found), body: {} };
  if (Array.isArray(found)) return isTurnList(found) ? { messages: found, body: {} } : undefined;
  if (!isRecord(found)) return undefined;
  const own = unwrapped(found.messages);
  if (Array.isArray(own)) return { messages: own, body: found };
  if (isResponsesRequest(found)) return responsesPrompt(found);
  if (depth === 0) return undefined;
  for (const key of REQUEST_KEYS) {
    const inner = found[key] == null ? undefined : findPrompt(found[key], depth - 1);
    if (inner) return inner;
  }
  return undefined;
}

/** `input` beside `model` or `instructions`: text, or items. */
const isResponsesRequest = ({ input, instructions, model }: JsonRecord): boolean =>
  (typeof input === "string" || isItemList(input) || isTurnList(input)) &&
  (typeof instructions === "string" || typeof model === "string");

function responsesPrompt(body: JsonRecord): Prompt {
  const { input, instructions } = body;
  const system =
    typeof instructions === "string" && instructions !== "" ? [{ role: "system", content: instructions }] : [];
  const asked = typeof input === "string" ? [{ role: "user", content: input }] : itemsToMessages(input as unknown[]);
  return { messages: [...system, ...asked], body };
}

type Answers = readonly (readonly unknown[])[];

/** The answers of a log line, one per choice; empty where it holds only a request. */
function findAnswers(value: unknown, isResponse: boolean, depth = DEPTH): Answers {
  const found = unwrapped(value);
  if (typeof found === "string") return isResponse ? textAnswer(found) : [];
  if (isResponse && isChunkList(found)) return findAnswers(assemble(found), true, depth);
  if (isResponse && isItemList(found)) return [itemsToMessages(found)];
  if (isResponse && isTurnList(found)) return [found];
  if (!isRecord(found)) return [];
  checkSucceeded(found);
  if (Array.isArray(found.choices)) return choicesOf(found.choices);
  if (isItemList(found.output) && !isTurn(found)) return [itemsToMessages(found.output)];
  if (isChunkList(found.chunks)) return findAnswers(assemble(found.chunks), true, depth);
  if (isResponse && isTurn(found)) return [[found]];
  if (isResponse && isTurn(found.message)) return [[found.message]];
  if (isResponse && isTurnList(found.messages)) return [found.messages];
  return depth === 0 ? [] : answersUnder(found, isResponse, depth);
}

function answersUnder(found: JsonRecord, isResponse: boolean, depth: number): Answers {
  for (const key of isResponse ? [...RESPONSE_KEYS, "body", "content", "text"] : RESPONSE_KEYS) {
    if (found[key] === undefined || found[key] === null) continue;
    const answers = findAnswers(found[key], true, depth - 1);
    if (answers.length > 0) return answers;
  }
  return [];
}

function textAnswer(text: string): Answers {
  const events = serverSentValues(text);
  return events && isChunkList(events)
    ? findAnswers(assemble(events), true, 1)
    : [[{ role: "assistant", content: text }]];
}

function choicesOf(choices: readonly unknown[]): Answers {
  if (choices.some((c) => isRecord(c) && "delta" in c)) return choicesOf(assemble([{ choices }]).choices as unknown[]);
  return [...choices].sort((a, b) => indexOf(a) - indexOf(b)).map((choice) => [choiceMessage(choice)]);
}

const indexOf = (choice: unknown): number => (isRecord(choice) && typeof choice.index === "number" ? choice.index : 0);

function choiceMessage(choice: unknown): unknown {
  if (isRecord(choice) && isRecord(choice.message)) {
    return choice.message.role === undefined ? { role: "assistant", ...choice.message } : choice.message;
  }
  if (isRecord(choice) && typeof choice.text === "string") return { role: "assistant", content: choice.text };
  throw damaged("a choice has no message");
}

/** Lines of batch files hold one side and the name of the pair. */
function batchHalf(value: JsonRecord): Half | undefined {
  const key = value.custom_id;
  if (typeof key !== "string") return undefined;
  const hasRequest = findPrompt(value.body) !== undefined && value.response === undefined;
  if (hasRequest) return { key, side: "request", body: value.body };
  const isResult = isRecord(value.response) && findPrompt(value) === undefined;
  return isResult || value.error
    ? { key, side: "result", body: value.error ? { error: value.error } : value.response }
    : undefined;
}

function read(value: unknown, options: FormatOptions): FormatResult {
  const half = isRecord(value) ? batchHalf(value) : undefined;
  if (half) return { rows: [], toolTurns: 0, half };
  const prompt = findPrompt(value);
  const answers = findAnswers(value, false);
  if (!prompt && answers.length === 0) throw damaged("neither messages nor choices");
  return answered(prompt?.messages ?? [], answers, prompt && toolsOf(prompt.body), options);
}

export const openaiFormat: Format = {
  name: "openai",
  isLog: true,
  expected: '{"request": {"messages": […]}, "response": {"choices": [{"message": {…}}]}}, or either half alone',
  detects(value) {
    if (!isRecord(value)) return false;
    if (Array.isArray(value.choices) || ("model" in value && Array.isArray(value.messages))) return true;
    if (value.object === "response" || isResponsesRequest(value)) return true;
    const hasHalf = (keys: readonly string[]) => keys.some((key) => value[key] !== undefined && value[key] !== null);
    return hasHalf(RESPONSE_KEYS)
      ? findPrompt(value) !== undefined || isRecord(unwrapped(value.response))
      : hasHalf(REQUEST_KEYS) && findPrompt(value) !== undefined;
  },
  read,
};
