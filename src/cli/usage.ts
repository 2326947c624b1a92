/** Commander's errors as diagnostics. */
import type { Command, CommanderError } from "commander";
import { type Diagnostic, diagnostic } from "../diagnostic.ts";
import { didYouMean, listNames } from "../suggest.ts";

/** The quoted part of commander's message. */
function quoted(message: string): string {
  return /'([^']*)'/.exec(message)?.[1] ?? "";
}

const quotedAll = (message: string): string[] => [...message.matchAll(/'([^']*)'/g)].map(([, text]) => text ?? "");

/** The command that the arguments reach: `serve start --prot` → `serve start`. */
function reachedCommand(program: Command, argv: readonly string[]): Command {
  let at = program;
  for (const arg of argv) {
    const next = at.commands.find((c) => c.name() === arg || c.aliases().includes(arg));
    if (next !== undefined) at = next;
  }
  return at;
}

function fullName(command: Command): string {
  const names: string[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent) names.unshift(at.name());
  return names.join(" ");
}

/** The command that prints the help of what was asked for. */
export const helpOf = (program: Command, argv: readonly string[]): string =>
  `${fullName(reachedCommand(program, argv))} --help`;

/** What a command takes in place of a spec, as it would be typed. */
const IN_PLACE: Readonly<Record<string, string>> = {
  "--model": "--model builtin:tiny",
  "--base-model": "--base-model builtin:tiny",
  "--base-url": "--base-url URL",
};

/** A spec that is missing is no fault of commands that can do without: what they take in its place is said too. */
export function withoutSpec(
  program: Command,
  argv: readonly string[],
  diagnostics: readonly Diagnostic[],
): readonly Diagnostic[] {
  const [only] = diagnostics;
  if (diagnostics.length !== 1 || only?.code !== "RL1001" || !only.detail.includes("`rlcli init`")) return diagnostics;
  const command = reachedCommand(program, argv);
  const ways = Object.entries(IN_PLACE).flatMap(([long, typed]) =>
    command.options.some((option) => option.long === long) ? [typed] : [],
  );
  if (command.registeredArguments.some((argument) => argument.name() === "tasks"))
    ways.push(`the tasks: \`${fullName(command)} ./tasks\``);
  if (ways.length === 0) return diagnostics;
  return [{ ...only, detail: `${only.detail} Without a spec, give ${ways.join(" or ")}.` }];
}

function optionNames(command: Command): string[] {
  const names: string[] = [];
  for (let at: Command | null = command; at !== null; at = at.parent)
    for (const option of at.options) names.push(...[option.long, option.short].filter((n) => typeof n === "string"));
  return [...names, "--help"];
}

/** `rlcli -f x plan`: options of a command stand after it. */
function misplaced(program: Command, reached: Command, option: string): string {
  const has = (command: Command): boolean => command.options.some((o) => o.short === option || o.long === option);
  const owner = reached === program ? program.commands.find(has) : has(reached) ? reached : undefined;
  return owner === undefined ? "" : ` It is an option of commands: write it after \`${owner.name()}\`.`;
}

export function usageDiagnostic(program: Command, argv: readonly string[], error: CommanderError): Diagnostic {
  const command = reachedCommand(program, argv);
  const help = `\`${fullName(command)} --help\``;
  const message = (error.message.replace(/^error: /, "").split("\n")[0] ?? "").replace(/\.$/, "");
  switch (error.code) {
    case "commander.unknownCommand": {
      const name = quoted(message);
      const hint =
        didYouMean(
          name,
          command.commands.map((c) => c.name()),
        ) || ` ${help} lists what there is.`;
      return diagnostic("RL9001", `\`${fullName(command)}\` has no command \`${name}\`.${hint}`);
    }
    case "commander.unknownOption": {
      const name = quoted(message).split("=")[0] ?? "";
      const elsewhere = misplaced(program, command, name);
      if (elsewhere !== "") return diagnostic("RL9002", `\`rlcli\` itself has no option \`${name}\`.${elsewhere}`);
      const hint = didYouMean(name, optionNames(command)) || ` ${help} lists what there is.`;
      return diagnostic("RL9002", `\`${fullName(command)}\` has no option \`${name}\`.${hint}`);
    }
    case "commander.help": {
      const names = listNames(
        command.commands.map((c) => c.name()),
        12,
        "or",
      );
      return diagnostic("RL9003", `\`${fullName(command)}\` needs a command after it: ${names}.`);
    }
    case "commander.invalidArgument": {
      const [option, given] = quotedAll(message);
      const choices = command.options.find(({ flags }) => flags === option)?.argChoices ?? [];
      const hint = didYouMean(given ?? "", choices) || ` ${help} shows how it is used.`;
      return diagnostic("RL9003", `\`${fullName(command)}\`: ${message}.${hint}`);
    }
    case "commander.excessArguments":
      return diagnostic("RL9003", `\`${fullName(command)}\` takes ${arity(command)}. ${help} shows how it is used.`);
    default:
      return diagnostic("RL9003", `\`${fullName(command)}\`: ${message}. ${help} shows how it is used.`);
  }
}

function arity(command: Command): string {
  const n = command.registeredArguments.length;
  return n === 0 ? "no arguments" : `${n} argument${n === 1 ? "" : "s"} at most`;
}
