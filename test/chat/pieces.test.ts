/** However an answer is cut into pieces, what is handed on together is what the whole gives: for each kind of tokenizer, and with calls. */
import fc from "fast-check";
import { expect, test } from "vitest";
import { CallListener } from "../../src/chat/calls.ts";
import { settledLength } from "../../src/chat/text.ts";
import { loadTokenizer } from "../../src/tokens/load.ts";

const folder = (name: string) => new URL(`../fixtures/tokens/small/${name}`, import.meta.url).pathname;

test.each(["metaspace-bpe", "legacy-bpe", "split-bpe", "unigram"])("text of %s settles as it stays", async (name) => {
  const tokenizer = await loadTokenizer(folder(name));
  const text = fc.string({ unit: fc.constantFrom("a", " ", "the ", "é", "日", "🙂", "\n", "  "), maxLength: 12 });
  fc.assert(
    fc.property(text, fc.array(fc.nat(255), { maxLength: 3 }), (content, noise) => {
      const ids = [...tokenizer.encodeContent(content), ...noise];
      const whole = tokenizer.decode(ids);
      for (let count = 1; count <= ids.length; count++) {
        const part = tokenizer.decode(ids.slice(0, count));
        expect(whole.startsWith(part.slice(0, settledLength(part, [])))).toBe(true);
      }
    }),
  );
});

test.each(["split-bpe", "legacy-bpe"])("the bytes of tokens of %s are its text's", async (name) => {
  const tokenizer = await loadTokenizer(folder(name));
  const text = "quick 日本語 🙂 é book";
  const bytes = tokenizer.encodeContent(text).flatMap((id) => [...tokenizer.bytesOf(id)]);
  expect(Buffer.from(bytes).toString().replaceAll("▁", " ").trim()).toBe(text);
});

const CALL = '<tool_call>{"name": "f", "arguments": {}}</tool_call>';

test("calls are heard alike in any pieces", () => {
  const part = fc.constantFrom(
    "text ",
    "<",
    "tool",
    "<think>",
    "</think>",
    CALL,
    "\n",
    "{",
    '{"name": "f", "parameters": {}}',
    "<tool_call>",
  );
  fc.assert(
    fc.property(
      fc.array(part, { maxLength: 6 }),
      fc.array(fc.nat(40), { maxLength: 8 }),
      fc.boolean(),
      (parts, cuts, isThinking) => {
        const text = parts.join("");
        const whole = new CallListener(isThinking);
        const wholeText = whole.push(text);
        const heard = whole.end();
        const pieces = new CallListener(isThinking);
        const places = [0, ...cuts.map((cut) => Math.min(cut, text.length)).sort((a, b) => a - b), text.length];
        const handed = places.slice(1).map((end, i) => pieces.push(text.slice(places[i], end)));
        const end = pieces.end();
        expect(end.calls).toEqual(heard.calls);
        expect(handed.join("") + end.text).toBe(wholeText + heard.text);
      },
    ),
    { numRuns: 2000 },
  );
});
