/** The command line's grammar: global options and all commands. Only parses; what to do is the caller's. */
import { Command } from "commander";
import { VERSION } from "./context.ts";
import { COMMANDS, type Run } from "./register.ts";
import { teach } from "./teach.ts";

export { examplesOf } from "./examples.ts";

export function createProgram(run: Run): Command {
  const program = new Command("rlcli")
    .description(
      "Terraform for LLM post-training: declare servers, datasets, losses and runs in rlcli.yaml, then plan and apply.",
    )
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .addHelpCommand(
      new Command("help")
        .argument("[command...]")
        .summary("print help for a command or a topic")
        .helpGroup("More:")
        .helpOption(false),
    )
    .option("-C, --chdir <dir>", "work as if started in this folder")
    .option("--json", "print results as JSON")
    .option("--no-color", "print without colour")
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError(false)
    .exitOverride()
    // Faults are printed as diagnostics.
    .configureOutput({ outputError: () => {}, writeErr: () => {} });
  for (const register of COMMANDS) register(program, run);
  teach(program);
  return program;
}
