/** Rows that already are lists of messages: ours, and the `conversations` form of from/value pairs (ShareGPT). */
import type { Format } from "../format.ts";
import { candidateOf, isTurn } from "../logs.ts";
import { damaged, isRecord } from "../row.ts";
import { checkWeight } from "../turns.ts";

/** Names under which a row may keep its turns. */
export const LIST_KEYS: ReadonlySet<string> = new Set([
  "messages",
  "conversations",
  "conversation",
  "turns",
  "dialog",
  "dialogue",
]);

/** The list of turns, under whichever name; undefined if there is none. */
function turnsOf(value: unknown): readonly unknown[] | undefined {
  if (Array.isArray(value)) return value;
  if (!isRecord(value)) return undefined;
  for (const key of LIST_KEYS) if (Array.isArray(value[key])) return value[key] as readonly unknown[];
  return undefined;
}

export const messagesFormat: Format = {
  name: "messages",
  isLog: false,
  expected: '{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}',
  detects: (value) => turnsOf(value)?.some(isTurn) ?? false,
  read(value, options) {
    const turns = turnsOf(value);
    if (!turns) throw damaged('no list under "messages"');
    const fields = isRecord(value) ? value : {};
    checkWeight(fields.weight, "a row's");
    const system = typeof fields.system === "string" && fields.system !== "" && !options.isVerbatim;
    const list = system ? [{ role: "system", content: fields.system }, ...turns] : turns;
    const { row, toolTurns } = candidateOf(list, fields.tools, {
      ...options,
      keepTools: options.keepTools || options.isVerbatim,
    });
    const weight = typeof fields.weight === "number" ? { weight: fields.weight } : {};
    const score = typeof fields.score === "number" ? { score: fields.score } : {};
    return { rows: [{ ...row, ...weight, ...score }], toolTurns };
  },
};
