/** All import formats, in the order in which `auto` asks them: the more particular ones first. Tasks are asked for by name alone. */
import { fail } from "../diagnostic.ts";
import type { Format } from "./format.ts";
import { alpacaFormat } from "./formats/alpaca.ts";
import { anthropicFormat } from "./formats/anthropic.ts";
import { claudeCodeFormat } from "./formats/claude-code.ts";
import { codexFormat } from "./formats/codex.ts";
import { langfuseFormat } from "./formats/langfuse.ts";
import { langsmithFormat } from "./formats/langsmith.ts";
import { litellmFormat } from "./formats/litellm.ts";
import { messagesFormat } from "./formats/messages.ts";
import { openaiFormat } from "./formats/openai.ts";
import { otelFormat } from "./formats/otel.ts";
import { tasksFormat } from "./formats/tasks.ts";
import type { Dedupe } from "./options.ts";

export const FORMATS: readonly Format[] = [
  langsmithFormat,
  litellmFormat,
  otelFormat,
  langfuseFormat,
  claudeCodeFormat,
  codexFormat,
  anthropicFormat,
  openaiFormat,
  messagesFormat,
  alpacaFormat,
];

export function formatNamed(name: string): Format {
  if (name === tasksFormat.name) return tasksFormat;
  const format = FORMATS.find((f) => f.name === name);
  return format ?? fail("RL6003", `There is no format ${name}. Known: auto, ${FORMATS.map((f) => f.name).join(", ")}.`);
}

export function detectFormat(value: unknown): Format | undefined {
  return FORMATS.find((f) => f.detects(value));
}

/** Which conversations a format leaves out unless it is told otherwise: of a log's growing ones, all but the longest. */
export const defaultDedupe = (format: Format | undefined): Dedupe => (format?.isLog ? "prefix" : "none");
