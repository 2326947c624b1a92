/** Instruction files: `instruction`, perhaps `input`, and `output` (Alpaca), or a prompt with its completion as plain text. */
import type { Format } from "../format.ts";
import { answered } from "../logs.ts";
import { damaged, isRecord, type JsonRecord } from "../row.ts";

interface Pair {
  readonly question: string;
  readonly answer: string;
}

const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

function pairOf(value: JsonRecord): Pair | undefined {
  const answer = text(value.output) ?? text(value.response) ?? text(value.completion) ?? text(value.answer);
  const instruction = text(value.instruction);
  const question = instruction ?? text(value.prompt) ?? text(value.question);
  if (answer === undefined || question === undefined) return undefined;
  const input = instruction === undefined ? undefined : text(value.input);
  // As the data set's own training code does, a blank line stands between what to do and what to do it with.
  return { question: input === undefined || input === "" ? question : `${question}\n\n${input}`, answer };
}

/** Earlier turns, as pairs of question and answer. */
function historyOf({ history }: JsonRecord): readonly unknown[] {
  if (!Array.isArray(history)) return [];
  return (history as unknown[]).flatMap((pair) => {
    if (!Array.isArray(pair) || pair.length !== 2) throw damaged("history is not a list of pairs");
    return [
      { role: "user", content: pair[0] as unknown },
      { role: "assistant", content: pair[1] as unknown },
    ];
  });
}

export const alpacaFormat: Format = {
  name: "alpaca",
  isLog: false,
  expected: '{"instruction": "…", "input": "…", "output": "…"}',
  detects: (value) => isRecord(value) && pairOf(value) !== undefined,
  read(value, options) {
    const pair = isRecord(value) ? pairOf(value) : undefined;
    if (!isRecord(value) || !pair) throw damaged("no instruction with an output");
    const system = text(value.system) ?? "";
    const prompt = [
      ...(system === "" ? [] : [{ role: "system", content: system }]),
      ...historyOf(value),
      { role: "user", content: pair.question },
    ];
    return answered(prompt, [[{ role: "assistant", content: pair.answer }]], undefined, options);
  },
};
