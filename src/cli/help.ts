/** `rlcli help WORDS`: of a command its help, of anything else what `explain` has to say. */
import type { Command } from "commander";

/** The only option of the program itself that has a value. */
const TAKES_FOLDER = /^(-C|--chdir)$/;

/** The arguments that the same is had with. */
export function helpArguments(program: Command, argv: readonly string[]): readonly string[] {
  const at = argv.findIndex((arg, i) => !arg.startsWith("-") && !TAKES_FOLDER.test(argv[i - 1] ?? ""));
  const words = argv.slice(at + 1).filter((arg) => !arg.startsWith("-"));
  if (argv[at] !== "help" || words.length === 0) return argv;
  const options = [...argv.slice(0, at), ...argv.slice(at + 1).filter((arg) => arg.startsWith("-"))];
  const isCommand = program.commands.some((command) => command.name() === words[0]);
  return isCommand ? [...options, ...words, "--help"] : [...options, "explain", ...words];
}
