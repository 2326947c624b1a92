/**
 * What a server's Python environment is made of. The recipe is plain data and its digest is the environment's name, so one
 * environment serves all servers and projects that ask for the same, and another commit of SkyRL gets another one.
 */
import { homedir } from "node:os";
import { join } from "node:path";
import { digestJson, shortDigest } from "../../digest.ts";
import { withoutCredentials } from "../../url.ts";
import { SKYRL_COMMIT } from "./settings.ts";

type Env = Readonly<Record<string, string | undefined>>;

/** `python:` of a server's block. */
export interface PythonSettings {
  readonly package?: string;
  readonly version?: string;
  readonly index?: string;
  readonly arguments?: readonly string[];
}

export interface EnvironmentRecipe {
  /** Version of Python. */
  readonly python: string;
  /** What uv is to install, SkyRL first. */
  readonly requirements: readonly string[];
  readonly index?: string;
  readonly arguments: readonly string[];
}

/** SkyRL at this commit needs 3.12 for its types, although its package says 3.11. */
const PYTHON = "3.12";
const PACKAGE = `skyrl[{extras}] @ git+https://github.com/NovaSky-AI/SkyRL@${SKYRL_COMMIT}`;

/**
 * Settings of the block win over RLCLI_SKYRL_PACKAGE, RLCLI_SKYRL_PYTHON, RLCLI_SKYRL_INDEX and RLCLI_SKYRL_ARGUMENTS (separated
 * by spaces), which are for a whole machine, and these over the defaults.
 */
export function recipeOf(extras: readonly string[], python: PythonSettings, env: Env): EnvironmentRecipe {
  const wanted = python.package ?? env.RLCLI_SKYRL_PACKAGE ?? PACKAGE;
  const index = python.index ?? env.RLCLI_SKYRL_INDEX;
  return {
    python: python.version ?? env.RLCLI_SKYRL_PYTHON ?? PYTHON,
    requirements: [withExtras(wanted, extras)],
    ...(index ? { index } : {}),
    arguments: python.arguments ?? (env.RLCLI_SKYRL_ARGUMENTS ?? "").split(/\s+/).filter((word) => word !== ""),
  };
}

/** `{extras}` is filled in; a bare path or URL of a wheel gets them appended; what names its own is left alone. */
function withExtras(wanted: string, extras: readonly string[]): string {
  if (wanted.includes("{extras}")) return wanted.replaceAll("{extras}", extras.join(","));
  return wanted.includes("[") ? wanted : `${wanted}[${extras.join(",")}]`;
}

/** The user's data folder for what rlcli installs: RLCLI_DATA, else `rlcli` in the place that XDG names. */
export function dataHome(env: Env): string {
  return env.RLCLI_DATA ?? join(env.XDG_DATA_HOME ?? join(env.HOME ?? homedir(), ".local", "share"), "rlcli");
}

/** A recipe as it is written down and shown: the variables of a machine may hold addresses with a password. */
export function openRecipe({ python, requirements, index, arguments: more }: EnvironmentRecipe): EnvironmentRecipe {
  const open = (texts: readonly string[]) => texts.map((text) => withoutCredentials(text));
  return {
    python,
    requirements: open(requirements),
    ...(index === undefined ? {} : { index: withoutCredentials(index) }),
    arguments: open(more),
  };
}

/** The name of a recipe's environment, on every machine. Another password makes no other environment. */
export const environmentName = (recipe: EnvironmentRecipe): string =>
  `skyrl-${shortDigest(digestJson(openRecipe(recipe)))}`;

/** Where the environment of a recipe is or will be. */
export function environmentFolder(recipe: EnvironmentRecipe, env: Env): string {
  return join(dataHome(env), "python", environmentName(recipe));
}
