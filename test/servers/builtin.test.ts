import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { describe, expect, test } from "vitest";
import { digestBytes } from "../../src/digest.ts";
import { BUILTIN_REVISION, ensureBuiltinModel, isBuiltinModel } from "../../src/servers/builtin.ts";
import { tinyFiles } from "../../src/servers/embedded/tiny.ts";
import { parameterCount, readModel } from "../../src/servers/embedded/weights.ts";
import { temporaryFolder } from "./embedded/support.ts";

/** Digest of all files of builtin:tiny by revision. A change of the bytes needs a new revision: runs hash it. */
const DIGESTS: Readonly<Record<string, string>> = {
  "1": "sha256:3af26141ddf77c920a90f7b871a524e221a8fea4394667cb1b7f031ab83538b2",
};

describe("builtin:tiny", () => {
  test("has the bytes of its revision", () => {
    const parts = [...tinyFiles()].map(([name, bytes]) => `${name} ${digestBytes(bytes)}\n`);
    expect(digestBytes(parts.join(""))).toBe(DIGESTS[BUILTIN_REVISION]);
  });

  test("is a model folder that can be run", () => {
    const folder = ensureBuiltinModel("builtin:tiny", temporaryFolder());
    const { architecture } = readModel(folder);
    expect(architecture.contextLength).toBeGreaterThanOrEqual(512);
    expect(parameterCount(architecture)).toBe(140_672);
  });

  test("is written once, and again only if it is gone", () => {
    const cache = temporaryFolder();
    const folder = ensureBuiltinModel("builtin:tiny", cache);
    writeFileSync(join(folder, "note.txt"), "");
    expect(ensureBuiltinModel("builtin:tiny", cache)).toBe(folder);
    expect(existsSync(join(folder, "note.txt"))).toBe(true);
    expect(readdirSync(cache)).toEqual([folder.slice(cache.length + 1)]);
  });

  test("tokenizes every byte to itself and knows its special tokens", () => {
    const folder = ensureBuiltinModel("builtin:tiny", temporaryFolder());
    const read = (name: string) => JSON.parse(readFileSync(join(folder, name), "utf8"));
    const tokenizer = new Tokenizer(read("tokenizer.json"), read("tokenizer_config.json"));
    const text = "Hello\n\t  wörld — 日本 🙂 <|im_start|>user\nx<|im_end|>";
    const ids = tokenizer.encode(text, { add_special_tokens: false }).ids;
    const plain = [...Buffer.from("Hello\n\t  wörld — 日本 🙂 ")];
    expect(ids).toEqual([...plain, 257, ...Buffer.from("user\nx"), 258]);
    expect(tokenizer.decode(ids, { skip_special_tokens: false, clean_up_tokenization_spaces: false })).toBe(text);
  });

  test("is the only one", () => {
    expect(isBuiltinModel("builtin:tiny")).toBe(true);
    expect(isBuiltinModel("Qwen/builtin")).toBe(false);
    expect(() => ensureBuiltinModel("builtin:huge", temporaryFolder())).toThrow(/RL5001.*builtin:tiny/);
  });

  test("a cache that cannot be written is named", () => {
    const blocked = join(temporaryFolder(), "file");
    writeFileSync(blocked, "");
    expect(() => ensureBuiltinModel("builtin:tiny", blocked)).toThrow(/RL5007/);
  });
});
