/** From a task's row to the conversation that the policy is asked to go on with. */

import { fail } from "../diagnostic.ts";
import type { EnvironmentOrder } from "../environment-order.ts";
import type { JsonObject } from "../value.ts";
import type { ChatMessage } from "./grader.ts";
import { fieldText } from "./grader.ts";

/** `{field}` becomes the field's text where the row has one; other braces stay as they are. */
function fillTemplate(template: string, row: JsonObject): string {
  return template.replace(/\{(\w+)\}/g, (whole, field: string) => fieldText(row, field) ?? whole);
}

/** System message, examples and question. Fails with RL7101 where the row has no question. */
export function taskMessages(order: EnvironmentOrder, row: JsonObject): readonly ChatMessage[] {
  const system: ChatMessage[] =
    order.system === undefined ? [] : [{ role: "system", content: fillTemplate(order.system, row) }];
  const shots = order.few_shot.flatMap(({ question, answer }): ChatMessage[] => [
    { role: "user", content: order.prompt === undefined ? question : fillTemplate(order.prompt, { question }) },
    { role: "assistant", content: answer },
  ]);
  return [...system, ...shots, ...questionOf(order, row)];
}

/** Whether a row has what is asked: a text, or a conversation. */
export function hasQuestion(row: JsonObject, field: string): boolean {
  return conversationOf(row[field]) !== undefined || fieldText(row, field) !== undefined;
}

function conversationOf(value: unknown): readonly ChatMessage[] | undefined {
  const isConversation = Array.isArray(value) && value.length > 0 && value.every(isMessage);
  return isConversation ? (value as ChatMessage[]) : undefined;
}

function questionOf({ question: field, prompt }: EnvironmentOrder, row: JsonObject): readonly ChatMessage[] {
  const conversation = conversationOf(row[field]);
  if (conversation) return conversation;
  const text = fieldText(row, field);
  if (text === undefined) {
    const has = Object.keys(row).join(", ") || "no fields";
    fail("RL7101", `A row has no text in its field \`${field}\`, which holds the question. It has ${has}.`);
  }
  const content = prompt === undefined ? text : fillTemplate(prompt, { ...row, question: text });
  return [{ role: "user", content }];
}

function isMessage(value: unknown): boolean {
  const { role, content } = (value ?? {}) as Record<string, unknown>;
  return typeof role === "string" && typeof content === "string";
}
