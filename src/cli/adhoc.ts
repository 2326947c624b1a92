/**
 * Verbs without a spec stand for one: it is written as an ordinary file under `.rlcli/adhoc/<hash>/`, with its state beside it,
 * in a `.rlcli` of its own, so that the same command finds what it did before, and `--emit-spec` can print it.
 */
import { existsSync, readFileSync } from "node:fs";
import { isAbsolute, join, relative, resolve } from "node:path";
import { stringify } from "yaml";
import { escapeInterpolation } from "../config/interpolate.ts";
import { fail } from "../diagnostic.ts";
import { digestJson, shortDigest } from "../digest.ts";
import { writeFileWhole } from "../files.ts";
import { credentialInField } from "../url.ts";
import type { CommandContext } from "./context.ts";

export interface AdhocSpec {
  readonly file: string;
  readonly text: string;
}

/**
 * `body` is a spec without its version and project. `identity` is what tells one ad-hoc project from another, unless a folder is named; paths
 * are absolute, since the file does not lie where the user stands. Fails with RL9004 where that folder holds a spec of the user's own.
 */
export function adhocSpec(
  context: CommandContext,
  verb: string,
  body: object,
  identity: unknown = body,
  folder = join(context.cwd, ".rlcli", "adhoc", shortDigest(digestJson({ verb, identity }))),
): AdhocSpec {
  refuseCredentials(body);
  const text = specText(body);
  const file = join(folder, "rlcli.yaml");
  if (existsSync(file) && !readFileSync(file, "utf8").startsWith(ADHOC_HEAD))
    fail("RL9004", `${file} is a spec that no command wrote. Nothing was changed; give another --log-path.`);
  if (!existsSync(file) || readFileSync(file, "utf8") !== text) writeFileWhole(file, text);
  return { file, text };
}

/** Fails with RL1308, without the address: what is written down or shown must not hold a secret. `value` is a text, or what holds texts. */
export function refuseCredentials(value: unknown): void {
  const what = credentialWithin(value, false);
  if (what === undefined) return;
  fail(
    "RL1308",
    `An address on the command line has ${what}. Nothing was written. Leave it out; the key of a server at --base-url is read from ${KEY_VARIABLE}.`,
  );
}

function credentialWithin(value: unknown, isWord: boolean): string | undefined {
  if (typeof value === "string") return credentialInField(value, isWord);
  if (typeof value !== "object" || value === null) return undefined;
  for (const item of Object.values(value)) {
    const what = credentialWithin(item, Array.isArray(value));
    if (what !== undefined) return what;
  }
  return undefined;
}

/** How such files begin. */
const ADHOC_HEAD = "rlcli: 1\nproject: adhoc\n";

/** A reference of the spec language, meant as one. */
export class SpecReference {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** What was typed is meant as it stands: `${` in a path is no reference of the spec language. */
function specText(body: object): string {
  const literal = (_: unknown, value: unknown) => {
    if (value instanceof SpecReference) return value.text;
    return typeof value === "string" ? escapeInterpolation(value) : value;
  };
  return stringify({ rlcli: 1, project: "adhoc", ...body }, literal);
}

/**
 * The same for a file that the user saves where he stands: paths below that folder start there, so that the spec works on another machine,
 * and so do those that were typed so (`typed`: what flags hold). Of others nobody knows what they would mean elsewhere.
 */
export function emittedText({ cwd }: Pick<CommandContext, "cwd">, body: object, typed: unknown): string {
  const ways = new Map(
    wordsIn(typed)
      .filter((word) => word !== "" && !isAbsolute(word))
      .map((word) => [resolve(cwd, word), word]),
  );
  const local = (value: unknown): unknown => {
    if (typeof value === "string") {
      const isBelow = value.startsWith(`${cwd}/`) && existsSync(value);
      return ways.has(value) || isBelow ? fromHere(relative(cwd, value)) : value;
    }
    if (Array.isArray(value)) return value.map(local);
    if (typeof value !== "object" || value === null || value instanceof SpecReference) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, local(inner)]));
  };
  return specText(local(body) as object);
}

/** Unmistakably a path. */
const fromHere = (path: string): string => (path === "" ? "." : path.startsWith("..") ? path : `./${path}`);

/** All texts that flags hold, and their words, since a command line is one text. */
function wordsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value, ...value.split(/[\s"']+/)];
  if (typeof value !== "object" || value === null) return [];
  return Object.values(value).flatMap(wordsIn);
}

export interface ServerChoice {
  readonly model?: string;
  readonly baseUrl?: string;
}

/** The key of a server at --base-url, as the official SDKs read it. Only its name is written down. */
const KEY_VARIABLE = "TINKER_API_KEY";

/** Where a server that somebody started by hand is looked for. */
const USUAL_URL = "http://127.0.0.1:8000";
const LOOK_TIMEOUT_MS = 1000;

/**
 * The server block for a verb without a spec: the one at --base-url; else a server at the usual place that serves the model; else
 * the embedded one for built-in models and local folders.
 */
export async function adhocServer(context: CommandContext, { model, baseUrl }: ServerChoice): Promise<object> {
  if (baseUrl !== undefined) {
    refuseCredentials(baseUrl);
    const key = context.env[KEY_VARIABLE];
    const secret = key ? { api_key: new SpecReference(`\${secret.${KEY_VARIABLE}}`) } : {};
    return { backend: "external", url: baseUrl, model: model ?? (await onlyModel(baseUrl, key)), ...secret };
  }
  const served = await servedModels(USUAL_URL);
  const [only] = served;
  if (model === undefined && served.length === 1) return { backend: "external", url: USUAL_URL, model: only };
  if (model === undefined) {
    fail(
      "RL9003",
      "Say which model: --model builtin:tiny for a first try, --model FOLDER for a small local one, or --base-url URL of a running server.",
    );
  }
  if (served.includes(model)) return { backend: "external", url: USUAL_URL, model };
  if (model.startsWith("builtin:") || isModelFolder(context, model)) {
    return { backend: "embedded", model: absoluteModel(context, model) };
  }
  const found =
    served.length > 0 ? `the server at ${USUAL_URL} has ${served.join(", ")}` : `no server answers at ${USUAL_URL}`;
  return fail(
    "RL9003",
    `\`${model}\` is neither built in nor a folder here, and ${found}. Give --base-url URL of a server that has it, or --model FOLDER.`,
  );
}

async function onlyModel(url: string, key: string | undefined): Promise<string> {
  const served = await servedModels(url, key);
  // Servers of ours name their model twice: as it was named to them, and by its folder.
  const named = served.filter((name) => !isAbsolute(name));
  if (served.length === 1 || named.length === 1) return (named[0] ?? served[0]) as string;
  const found = served.length === 0 ? "does not say what it serves (is it running?)" : `serves ${served.join(", ")}`;
  return fail("RL9003", `The server at ${url} ${found}: say which model with --model.`);
}

/** Names of the models that a server lists; none where nothing answers. */
async function servedModels(url: string, key?: string): Promise<readonly string[]> {
  const { TinkerClient } = await import("../tinker/client.ts");
  const client = new TinkerClient({ baseUrl: url, ...(key ? { apiKey: key } : {}) });
  try {
    await client.health({ timeoutMs: LOOK_TIMEOUT_MS });
    const models = await client.capabilities({ signal: AbortSignal.timeout(LOOK_TIMEOUT_MS) });
    return models.flatMap(({ modelName }) => (modelName === undefined ? [] : [modelName]));
  } catch {
    return [];
  } finally {
    await client.close();
  }
}

/** A model folder given on the command line is meant from where the user stands. */
export function absoluteModel(context: CommandContext, model: string): string {
  return /^\.{1,2}(\/|$)/.test(model) || isModelFolder(context, model) ? resolve(context.cwd, model) : model;
}

export function isModelFolder(context: CommandContext, model: string): boolean {
  return existsSync(join(resolve(context.cwd, model), "config.json"));
}
