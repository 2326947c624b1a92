/** Tasks and a grader from flags: the dataset and the environment that a verb without a spec stands for. */
import { existsSync, readFileSync } from "node:fs";
import { isAbsolute, resolve } from "node:path";
import { fail } from "../../diagnostic.ts";
import { readFault } from "../../files.ts";
import { SpecReference } from "../adhoc.ts";
import type { CommandContext } from "../context.ts";
import { blockOf, datasetFile } from "./work.ts";

export interface EnvironmentFlags {
  readonly dataset: string;
  readonly env: string;
  readonly question?: string;
  readonly answer?: string;
  readonly system?: string;
  readonly prompt?: string;
  readonly tag?: string;
  readonly tolerance?: number;
  readonly mode?: string;
  readonly pattern?: string;
  readonly ignoreCase?: boolean;
  readonly choices?: string;
  readonly schema?: string;
  readonly command?: string;
  readonly module?: string;
  readonly maxTurns?: number;
  readonly url?: string;
  readonly judgeModel?: string;
  readonly rubric?: string;
  readonly apiKeyEnv?: string;
  readonly timeout?: string;
}

/** Names of datasets that need no `hf://`: where the rows of a split are. */
const KNOWN_DATASETS: Readonly<Record<string, (split: "train" | "test") => string>> = {
  gsm8k: (split) => `hf://openai/gsm8k/main/${split}`,
};

/** Where tasks come from: a file, absolute; `hf://…` as it is; a known name's rows. */
export async function tasksSource(context: CommandContext, name: string, split: "train" | "test"): Promise<string> {
  if (name.startsWith("hf://")) return name;
  const known = Object.hasOwn(KNOWN_DATASETS, name) && !existsSync(resolve(context.cwd, name));
  return known ? (KNOWN_DATASETS[name] as (of: string) => string)(split) : datasetFile(context, name);
}

/** The environment's block; `dataset` is the name of its tasks' block. */
export function environmentBlock(
  context: CommandContext,
  flags: EnvironmentFlags,
  dataset: string,
): Record<string, unknown> {
  return blockOf({
    type: flags.env,
    dataset,
    question: flags.question,
    answer: flags.answer,
    system: flags.system,
    prompt: flags.prompt,
    tag: flags.tag,
    tolerance: flags.tolerance,
    mode: flags.mode,
    pattern: flags.pattern,
    ignore_case: flags.ignoreCase,
    choices: flags.choices,
    schema: flags.schema === undefined ? undefined : readSchema(context, flags.schema),
    command: flags.command === undefined ? undefined : commandWords(context, flags.command),
    module: flags.module === undefined ? undefined : resolve(context.cwd, flags.module),
    max_turns: flags.maxTurns,
    url: flags.url,
    model: flags.judgeModel,
    rubric: flags.rubric,
    api_key: flags.apiKeyEnv === undefined ? undefined : secretOf(flags.apiKeyEnv),
    timeout: flags.timeout,
  });
}

function secretOf(name: string): SpecReference {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    fail("RL9003", `--api-key-env takes the name of an environment variable, not \`${name}\`.`);
  return new SpecReference(`\${secret.${name}}`);
}

function readSchema(context: CommandContext, name: string): unknown {
  const path = resolve(context.cwd, name);
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    return fail("RL9009", `The JSON Schema ${name} ${readFault(error)}.`);
  }
}

/** Words of a command line, by spaces and quotes as a shell has them but without its other powers. Files in it become absolute. */
export function commandWords(context: Pick<CommandContext, "cwd">, line: string): readonly string[] {
  const words = splitWords(line);
  if (words === undefined) fail("RL9003", `--command has a quote that is not closed: \`${line}\`.`);
  if (words.length === 0) fail("RL9003", "--command takes a program and its arguments.");
  return words.map((word) => {
    const isFile = !isAbsolute(word) && /[./]/.test(word) && existsSync(resolve(context.cwd, word));
    return isFile ? resolve(context.cwd, word) : word;
  });
}

/** Undefined where a quote stays open. */
function splitWords(line: string): string[] | undefined {
  const words: string[] = [];
  let word: string | undefined;
  let quote = "";
  for (let at = 0; at < line.length; at++) {
    const char = line[at] as string;
    if (char === quote) quote = "";
    else if (quote === "" && (char === '"' || char === "'")) {
      quote = char;
      word ??= "";
    } else if (char === "\\" && quote !== "'" && at + 1 < line.length) {
      at += 1;
      word = (word ?? "") + line[at];
    } else if (quote === "" && /\s/.test(char)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else word = (word ?? "") + char;
  }
  if (quote !== "") return undefined;
  return word === undefined ? words : [...words, word];
}
