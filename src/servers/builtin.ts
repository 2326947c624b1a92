/** Models that come with rlcli: their names start with `builtin:`. */
import { fail } from "../diagnostic.ts";
import { ensureTinyModel, TINY_MODEL, TINY_REVISION } from "./embedded/tiny.ts";

/** Changes whenever the bytes of a built-in model change. */
export const BUILTIN_REVISION = TINY_REVISION;

export function isBuiltinModel(model: string): boolean {
  return model.startsWith("builtin:");
}

/** The Hugging Face folder of a built-in model below `cacheFolder`, written on first use. Throws RL5001 for another name. */
export function ensureBuiltinModel(model: string, cacheFolder: string): string {
  if (model !== TINY_MODEL) fail("RL5001", `There is no built-in model ${model}. Did you mean \`${TINY_MODEL}\`?`);
  return ensureTinyModel(cacheFolder);
}
