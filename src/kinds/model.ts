/** Where a model's files are and what its name resolves to. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join, resolve } from "node:path";
import { fail } from "../diagnostic.ts";
import { digestJson } from "../digest.ts";
import { DigestCache } from "../digest-cache.ts";
import type { ProjectContext } from "../kind.ts";
import { BUILTIN_REVISION, ensureBuiltinModel, isBuiltinModel } from "../servers/builtin.ts";
import type { SpecInput } from "../spec.ts";

/** Files that decide what a model says: weights, configuration, tokenizer and template. */
const MODEL_FILES =
  /^(config|tokenizer|tokenizer_config|special_tokens_map|generation_config|model\.safetensors\.index)\.json$|\.safetensors$|^chat_template\.jinja$/;

/** A local folder that a model's name stands for, or undefined for a built-in or a hub name. */
export function localFolder(model: string, project: Pick<ProjectContext, "folder">): string | undefined {
  if (isBuiltinModel(model)) return undefined;
  const path = model.startsWith("~/") ? join(homedir(), model.slice(2)) : model;
  const folder = isAbsolute(path) ? path : resolve(project.folder, path);
  if (existsSync(join(folder, "config.json"))) return folder;
  const isWrittenAsPath = /^[.~/]/.test(model);
  if (isWrittenAsPath) {
    const what =
      existsSync(folder) && statSync(folder).isDirectory()
        ? "has no config.json, so it is not a Hugging Face model folder"
        : "does not exist";
    fail(
      "RL5002",
      `The model folder ${model} ${what}. Give the folder that holds config.json, tokenizer.json and the safetensors files.`,
    );
  }
  return undefined;
}

/** The folder with tokenizer and, for the embedded server, weights; writes a built-in model into the cache on first use. */
export async function modelFolder(model: string, project: ProjectContext): Promise<string> {
  if (isBuiltinModel(model)) return ensureBuiltinModel(model, project.cacheFolder);
  const folder = localFolder(model, project);
  if (folder) return folder;
  return fail(
    "RL5010",
    `${model} is not a folder on this machine, and its tokenizer is needed here. Download the model and give its folder as \`model\`, or use builtin:tiny for a first try.`,
  );
}

/** What a name resolves to: content for a folder, a version for a built-in, nothing for a hub name. */
export async function modelRevision(
  model: string,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<{ revision: string | null; inputs: readonly SpecInput[] }> {
  if (isBuiltinModel(model)) return { revision: BUILTIN_REVISION, inputs: [] };
  const folder = localFolder(model, project);
  if (!folder) return { revision: null, inputs: [] };
  const cache = new DigestCache(join(project.dataFolder, "cache", "digests-models.json"));
  const inputs: SpecInput[] = [];
  for (const name of readdirSync(folder)
    .filter((file) => MODEL_FILES.test(file))
    .sort()) {
    const path = join(folder, name);
    inputs.push({ type: "file", path, digest: await cache.digest(path, signal) });
  }
  if (existsSync(project.dataFolder)) cache.save();
  const files = inputs.map((input) =>
    input.type === "file" ? [input.path.slice(folder.length + 1), input.digest] : [],
  );
  return { revision: digestJson(files), inputs };
}
