/** Tokens to text, for stop strings only: everything else of the server is token in, token out. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { messageOf } from "../../diagnostic.ts";
import type { Decode } from "./sampler.ts";
import { RequestError } from "./trainer.ts";

/** Reads a model folder's tokenizer. Throws RequestError if there is none that works. */
export function loadDecode(modelFolder: string): Decode {
  const read = (name: string) => JSON.parse(readFileSync(join(modelFolder, name), "utf8"));
  try {
    const tokenizer = new Tokenizer(read("tokenizer.json"), read("tokenizer_config.json"));
    return (tokens) =>
      tokenizer.decode([...tokens], { skip_special_tokens: false, clean_up_tokenization_spaces: false });
  } catch (error) {
    throw new RequestError(
      `Stop strings need the model's tokenizer, which cannot be read (${messageOf(error)}). Use stop tokens instead.`,
    );
  }
}
