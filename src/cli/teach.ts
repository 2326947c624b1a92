/** What makes help teach: commands in groups, the ways each is used, and where to go on. */
import type { Command } from "commander";
import { examplesOf, examplesText } from "./examples.ts";

/** Headings of `rlcli --help`, in the order in which a project is made. */
const GROUPS: readonly (readonly [heading: string, commands: readonly string[]])[] = [
  ["Begin:", ["init", "validate", "explain", "doctor"]],
  ["Plan and apply:", ["plan", "apply", "destroy", "lock"]],
  ["See how it goes:", ["status", "logs", "stop", "show", "output", "state", "support"]],
  [
    "Weights and answers:",
    ["sample", "eval", "rollouts", "regrade", "run", "checkpoint", "session", "deployment", "rollback", "prune"],
  ],
  ["Without a spec:", ["train", "import", "render"]],
  ["Servers and sandboxes:", ["serve", "bench", "env"]],
  ["More:", ["completion"]],
];

/** What `rlcli WORD` takes. */
export const COMMAND_NAMES: readonly string[] = GROUPS.flatMap(([, commands]) => commands);

const NEXT = "\nNew here? `rlcli init` writes a first project, `rlcli plan` says what it would do.";

/** The words that reach a command, without the program's own name. */
export function pathOf(command: Command): string {
  const words: string[] = [];
  for (let at: Command = command; at.parent !== null; at = at.parent) words.unshift(at.name());
  return words.join(" ");
}

/** Every command below, those that hold others too. */
export function allCommands(command: Command): readonly Command[] {
  return command.commands.flatMap((inner) => [inner, ...allCommands(inner)]);
}

/** Called once all commands are there. */
export function teach(program: Command): void {
  for (const command of program.commands) {
    const group = GROUPS.find(([, names]) => names.includes(command.name()));
    command.helpGroup(group?.[0] ?? "More:");
  }
  for (const command of allCommands(program)) {
    const examples = examplesOf(pathOf(command));
    if (examples.length > 0) command.addHelpText("after", examplesText(examples));
  }
  program.addHelpText("after", NEXT);
}
