/**
 * What may stand at the cursor, from the grammar that the program parses by: commands, options, values of options. Names that only a spec
 * knows are asked for by `Wanted`. Pure; what a shell does with it is in `scripts.ts`.
 */
import type { Command, Option } from "commander";

export interface Candidate {
  readonly value: string;
  /** For shells that show one. */
  readonly about: string;
}

/** What a spec, or the schema, has to be asked for. */
export type NameKind =
  | "run"
  | "server"
  | "dataset"
  | "environment"
  | "eval"
  | "deployment"
  | "address"
  | "variable"
  | "topic"
  | "weights";

/** What stands at the cursor where the grammar does not list it. */
export type Wanted = NameKind | "file" | "folder" | "nothing";

export interface Completion {
  /** The part of the word before what is completed: `--format=`. */
  readonly prefix: string;
  /** What is there of the rest. */
  readonly typed: string;
  readonly candidates: readonly Candidate[];
  readonly wanted: Wanted;
}

/** Arguments by the names they have in the grammar. */
const ARGUMENTS: Readonly<Record<string, Wanted>> = {
  run: "run",
  server: "server",
  address: "address",
  deployment: "deployment",
  names: "eval",
  topic: "topic",
  model: "weights",
  dir: "folder",
  tasks: "folder",
  file: "file",
  files: "file",
  plan: "file",
};

/** Options whose value's name does not tell, or tells something else. */
const OPTIONS: Readonly<Record<string, Wanted>> = {
  "--server": "server",
  "--run": "run",
  "--environment": "environment",
  "--target": "address",
  "--replace": "address",
  "--var": "variable",
  "--dataset": "file",
  "--eval-dataset": "file",
  "--logs": "file",
  "--module": "file",
  "--model": "folder",
  "--host": "nothing",
  "--ray-address": "nothing",
};

/** Arguments that mean something else with one command. */
const EXCEPTIONS: Readonly<Record<string, Wanted>> = { "output.name": "address", "rollouts.name": "run" };

const VALUES: Readonly<Record<string, Wanted>> = { file: "file", dir: "folder" };

const about = (text: string): string => text.split("\n")[0] ?? "";

/** `words` are those before the cursor, without the program's name; the last is the one at the cursor, possibly empty. */
export function complete(program: Command, words: readonly string[]): Completion {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? "";
  const { command, position, open, isLiteral } = readWords(program, before);
  if (open) return valuesOf(open, "", current);
  const equals = /^(--[^=]+=)(.*)$/.exec(current);
  if (equals && !isLiteral) {
    const [, prefix = "", typed = ""] = equals;
    const option = optionNamed(command, prefix.slice(0, -1));
    return option ? valuesOf(option, prefix, typed) : { prefix, typed, candidates: [], wanted: "nothing" };
  }
  if (current.startsWith("-") && !isLiteral) return ofOptions(command, before, current);
  const found = ofArguments(command, position, current);
  // `help` takes topics beside the commands.
  return command === program && position === 0 && before.includes("help") ? { ...found, wanted: "topic" } : found;
}

interface Read {
  readonly command: Command;
  /** How many arguments of the command stand there already. */
  readonly position: number;
  /** An option that waits for its value. */
  readonly open: Option | undefined;
  /** Whether `--` was said: nothing after it is an option. */
  readonly isLiteral: boolean;
}

function readWords(program: Command, words: readonly string[]): Read {
  let command = program;
  let position = 0;
  let open: Option | undefined;
  let isLiteral = false;
  for (const word of words) {
    if (open) open = undefined;
    else if (isLiteral) position++;
    else if (word === "--") isLiteral = true;
    else if (word.startsWith("-") && word !== "-") {
      const option = word.includes("=") ? undefined : optionNamed(command, word);
      if (option?.required) open = option;
    } else if (word !== "help" || command !== program || position > 0) {
      // (`help serve` is about a command: what follows is completed as if it were called.)
      const next = position === 0 ? commandNamed(command, word) : undefined;
      if (next) command = next;
      else position++;
    }
  }
  return { command, position, open, isLiteral };
}

const commandNamed = (command: Command, word: string): Command | undefined =>
  command.commands.find((inner) => inner.name() === word || inner.aliases().includes(word));

/** Options of a command with those of the commands that hold it. */
function optionsOf(command: Command): readonly Option[] {
  return [...command.options, ...(command.parent ? optionsOf(command.parent) : [])];
}

const optionNamed = (command: Command, flag: string): Option | undefined =>
  optionsOf(command).find((option) => option.long === flag || option.short === flag);

function valuesOf(option: Option, prefix: string, typed: string): Completion {
  const candidates = (option.argChoices ?? []).map((value) => ({ value, about: about(option.description) }));
  const name = /[<[]([^>\]]+)/.exec(option.flags)?.[1] ?? "";
  const wanted = candidates.length > 0 ? "nothing" : (OPTIONS[option.long ?? ""] ?? VALUES[name] ?? "nothing");
  return { prefix, typed, candidates, wanted };
}

/** Those that may still be given: once, unless they may be repeated. */
function ofOptions(command: Command, before: readonly string[], typed: string): Completion {
  const isGiven = ({ long, short }: Option): boolean =>
    before.some((word) => word === long || word === short || (long && word.startsWith(`${long}=`)));
  const left = optionsOf(command).filter((option) => !option.hidden && (!isGiven(option) || isRepeatable(option)));
  const candidates = left.flatMap(({ long, short, description }) => {
    const name = long ?? short;
    return name === undefined ? [] : [{ value: name, about: about(description) }];
  });
  return {
    prefix: "",
    typed,
    candidates: [...candidates, { value: "--help", about: "print help" }],
    wanted: "nothing",
  };
}

const isRepeatable = ({ description, long }: Option): boolean =>
  /may be repeated|given again/.test(description) || long === "--var" || long === "--var-file";

function ofArguments(command: Command, position: number, typed: string): Completion {
  const nothing: Completion = { prefix: "", typed, candidates: [], wanted: "nothing" };
  if (command.commands.length > 0 && position === 0) {
    const shown = command.createHelp().visibleCommands(command);
    return {
      ...nothing,
      candidates: shown.map((c) => ({ value: c.name(), about: about(c.summary() || c.description()) })),
    };
  }
  const args = command.registeredArguments;
  const argument = args[position] ?? (args.at(-1)?.variadic ? args.at(-1) : undefined);
  if (!argument) return nothing;
  const choices = (argument.argChoices ?? []).map((value) => ({ value, about: argument.description }));
  if (choices.length > 0) return { ...nothing, candidates: choices };
  const exception = EXCEPTIONS[`${command.name()}.${argument.name()}`];
  return { ...nothing, wanted: exception ?? ARGUMENTS[argument.name()] ?? "nothing" };
}

/** Values of `--file`, which say which spec the names are of. */
export function specFilesOf(program: Command, words: readonly string[]): readonly string[] {
  const { command } = readWords(program, words.slice(0, -1));
  return words.slice(0, -1).flatMap((word, at) => {
    if (word.startsWith("--file=")) return [word.slice("--file=".length)];
    const isFile = word === "--file" || (word === "-f" && optionNamed(command, "-f")?.long === "--file");
    const value = words[at + 1];
    return isFile && value !== undefined && at + 1 < words.length - 1 ? [value] : [];
  });
}
