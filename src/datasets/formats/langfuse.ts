/** Langfuse exports: observations of type GENERATION, `input` and `output` in the provider's form; scores as in feedback. */
import type { Format } from "../format.ts";
import { isTurnList, unwrapped } from "../logs.ts";
import { damaged, isRecord, type JsonRecord, skipped } from "../row.ts";
import { anthropicFormat } from "./anthropic.ts";
import { openaiFormat } from "./openai.ts";

const MARKS = [
  "traceId",
  "trace_id",
  "parentObservationId",
  "observationId",
  "promptName",
  "completionStartTime",
  "calculatedTotalCost",
];

/** A request whose input is the list of messages, or an object that holds it; text is one question. */
function requestOf(input: unknown): unknown {
  const found = unwrapped(input);
  if (isTurnList(found)) return { messages: found };
  return typeof found === "string" && found !== "" ? { messages: [{ role: "user", content: found }] } : found;
}

/** Mean of numeric scores; undefined without one. */
function scoreOf({ scores }: JsonRecord): number | undefined {
  if (!Array.isArray(scores)) return undefined;
  const numbers = (scores as unknown[]).flatMap((score) => {
    const value = isRecord(score) ? score.value : score;
    return typeof value === "number" ? [value] : [];
  });
  return numbers.length === 0 ? undefined : numbers.reduce((sum, n) => sum + n, 0) / numbers.length;
}

export const langfuseFormat: Format = {
  name: "langfuse",
  isLog: true,
  expected:
    '{"type": "GENERATION", "traceId": "…", "input": {"messages": […]}, "output": {"role": "assistant", "content": "…"}}',
  detects: (value) =>
    isRecord(value) &&
    (value.type === "GENERATION" || (MARKS.some((mark) => mark in value) && "input" in value && "output" in value)),
  read(value, options) {
    if (!isRecord(value)) throw damaged("not an observation");
    if (typeof value.type === "string" && value.type !== "GENERATION") throw skipped("an observation of no model");
    if (value.level === "ERROR") throw skipped("the request failed");
    const pair = { request: requestOf(value.input), response: unwrapped(value.output) };
    const { rows, ...rest } = (anthropicFormat.detects(pair) ? anthropicFormat : openaiFormat).read(pair, options);
    const score = scoreOf(value);
    return { ...rest, rows: score === undefined ? rows : rows.map((row) => ({ ...row, score })) };
  },
};
