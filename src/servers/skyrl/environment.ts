/**
 * Makes Python environments with uv. A folder `skyrl-<digest>` holds one:
 *
 *   venv/           the environment
 *   recipe.json     what it was made from
 *   complete.json   written last: without it the folder is an interrupted installation, which the next one takes up
 *   install.log     uv's words
 *   turn-N.lock     one installer at a time (`turn.ts`)
 *
 * An interrupted installation costs little: uv keeps what it has downloaded in its cache, and installs into the same folder again.
 */
import { spawn } from "node:child_process";
import { closeSync, existsSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { diagnostic, messageOf, RlcliError } from "../../diagnostic.ts";
import { writeFileWhole } from "../../files.ts";
import { takeTurnUnless } from "../../turn.ts";
import { withoutCredentials } from "../../url.ts";
import { type EnvironmentRecipe, environmentFolder, openRecipe } from "./recipe.ts";
import { requireUv } from "./uv.ts";

type Env = Readonly<Record<string, string | undefined>>;

export interface PythonEnvironment {
  /** Of the virtual environment itself. */
  readonly folder: string;
  readonly uv: string;
}

export interface InstallOptions {
  readonly env: Env;
  readonly signal?: AbortSignal;
  readonly onPhase?: (text: string) => void;
}

const FORMAT_VERSION = 1;
const LOG_TAIL_LINES = 15;

const completePath = (folder: string): string => join(folder, "complete.json");

export const isInstalled = (recipe: EnvironmentRecipe, env: Env): boolean =>
  existsSync(completePath(environmentFolder(recipe, env)));

/** The environment of a recipe, made if there is none. Callers may race: one installs, the others wait. Throws RL5021, RL5022. */
export async function ensureEnvironment(
  recipe: EnvironmentRecipe,
  options: InstallOptions,
): Promise<PythonEnvironment> {
  const { env, signal, onPhase } = options;
  const uv = requireUv(env);
  const folder = environmentFolder(recipe, env);
  const isDone = () => existsSync(completePath(folder));
  if (!isDone()) {
    onPhase?.("waiting for the Python environment");
    const release = await takeTurnUnless(isDone, folder, signal).catch((error) => refuse(folder, messageOf(error)));
    try {
      if (!isDone()) await install(recipe, folder, uv, options);
    } finally {
      release?.();
    }
  }
  return { folder: join(folder, "venv"), uv };
}

async function install(recipe: EnvironmentRecipe, folder: string, uv: string, options: InstallOptions): Promise<void> {
  const { onPhase } = options;
  const shown = openRecipe(recipe);
  const venv = join(folder, "venv");
  writeFileWhole(
    join(folder, "recipe.json"),
    `${JSON.stringify({ formatVersion: FORMAT_VERSION, ...shown }, null, 2)}\n`,
  );
  onPhase?.(`making a Python ${recipe.python} environment in ${folder}`);
  if (!existsSync(join(venv, "pyvenv.cfg"))) await run(uv, ["venv", "--python", recipe.python, venv], folder, options);
  onPhase?.(
    `installing ${shown.requirements.join(" ")} (minutes the first time; the log is ${join(folder, "install.log")})`,
  );
  const index = recipe.index === undefined ? [] : ["--default-index", recipe.index];
  const python = ["--python", join(venv, "bin", "python")];
  await run(uv, ["pip", "install", ...python, ...index, ...recipe.arguments, ...recipe.requirements], folder, options);
  writeFileWhole(
    completePath(folder),
    `${JSON.stringify({ formatVersion: FORMAT_VERSION, at: new Date().toISOString() })}\n`,
  );
}

/** One run of uv with its output in the log; its last words if it fails. An abort ends it. */
async function run(
  uv: string,
  args: readonly string[],
  folder: string,
  { env, signal }: InstallOptions,
): Promise<void> {
  mkdirSync(folder, { recursive: true });
  const path = join(folder, "install.log");
  const log = openSync(path, "a", 0o600);
  writeSync(log, `${new Date().toISOString()} uv ${withoutCredentials(args.join(" "))}\n`);
  const child = spawn(uv, args, {
    stdio: ["ignore", log, log],
    env: { ...env, NO_COLOR: "1" },
    ...(signal ? { signal } : {}),
  });
  closeSync(log);
  const code = await new Promise<number | NodeJS.Signals | Error>((resolve) => {
    child.once("error", resolve);
    child.once("exit", (status, killedBy) => resolve(status ?? killedBy ?? 1));
  });
  signal?.throwIfAborted();
  if (code === 0) return;
  const what = code instanceof Error ? code.message : `\`uv ${args[0]}\` ended with ${code}`;
  refuse(folder, `${what}. The end of ${path}:\n${tail(path)}`);
}

function refuse(folder: string, what: string): never {
  const hint =
    "Sites without a network set `python` of the server, or RLCLI_SKYRL_PACKAGE, RLCLI_SKYRL_INDEX and RLCLI_SKYRL_ARGUMENTS.";
  throw new RlcliError(diagnostic("RL5022", `The Python environment in ${folder} could not be made: ${what}\n${hint}`));
}

function tail(path: string): string {
  try {
    return readFileSync(path, "utf8").trimEnd().split("\n").slice(-LOG_TAIL_LINES).join("\n");
  } catch {
    return "(it is gone)";
  }
}
