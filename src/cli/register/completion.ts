/** Shell completion: the command that prints a script, and the one that scripts call. */
import { Argument } from "commander";
import { SHELLS, type Shell } from "../completion/scripts.ts";
import type { Register } from "../register.ts";

export const registerCompletion: Register = (program, run) => {
  program
    .command("completion")
    .summary("print a script for completion in a shell")
    .description(
      "Prints a script that completes commands, options, their values, and names of the spec in the folder (runs, servers, evals, addresses).",
    )
    .addArgument(new Argument("<shell>", "whose script").choices(SHELLS))
    .action((shell: Shell) =>
      run(async (context) => (await import("../commands/completion.ts")).completion(context, shell)),
    );
  program
    .command("__complete", { hidden: true })
    .argument("[words...]")
    .action((words: readonly string[]) =>
      run(async (context) => (await import("../commands/completion.ts")).answerShell(context, program, words)),
    );
};
