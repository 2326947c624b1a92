/**
 * The command line's entry: parses arguments, runs one command, turns what it throws into output and an exit code. Imports
 * nothing heavy; commands load their own.
 */
import { Command, CommanderError } from "commander";
import { fail, messageOf, RlcliError } from "../diagnostic.ts";
import {
  type CommandContext,
  createContext,
  EXIT,
  type GlobalOptions,
  reportFailure,
  VERSION,
  watchOutput,
} from "./context.ts";
import { COMMANDS, type Run } from "./register.ts";
import { usageDiagnostic } from "./usage.ts";

function createProgram(run: Run): Command {
  const program = new Command("rlcli")
    .description(
      "Terraform for LLM post-training: declare servers, datasets, losses and runs in rlcli.yaml, then plan and apply.",
    )
    .version(VERSION, "-V, --version", "print the version")
    .helpOption("-h, --help", "print this help")
    .helpCommand(false)
    .option("-C, --chdir <dir>", "work as if started in this folder")
    .option("--json", "print results as JSON")
    .option("--no-color", "print without colour")
    .configureHelp({ showGlobalOptions: true })
    .showSuggestionAfterError(false)
    .exitOverride()
    // Faults are printed as diagnostics.
    .configureOutput({ outputError: () => {} });
  for (const register of COMMANDS) register(program, run);
  return program;
}

function enterFolder(dir: string | undefined): void {
  if (dir === undefined) return;
  try {
    process.chdir(dir);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason =
      code === "ENOENT" ? "there is no such folder" : code === "ENOTDIR" ? "it is not a folder" : messageOf(error);
    fail("RL9006", `\`${dir}\` cannot be entered: ${reason}.`, { cause: error });
  }
}

/** Words that are safe to repeat in a report: commands and option names, not their values. */
function commandWords(argv: readonly string[]): string {
  return argv
    .map((arg) => (arg.startsWith("-") ? (arg.split("=")[0] ?? arg) : /^[a-z][a-z-]*$/.test(arg) ? arg : "…"))
    .join(" ");
}

function reportBug(error: unknown, argv: readonly string[]): void {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  process.stderr.write(
    `This is a bug in rlcli, not a mistake of yours. Please report it with the lines below.\n\n` +
      `rlcli ${VERSION}, Node ${process.version}, ${process.platform} ${process.arch}\n` +
      `command: rlcli ${commandWords(argv)}\n${stack}\n`,
  );
}

/** What a thrown value means: help and version are done, a user's fault is reported, anything else is a bug. */
function handleThrown(
  error: unknown,
  program: Command,
  argv: readonly string[],
  context: () => CommandContext,
): number {
  if (error instanceof CommanderError) {
    if (error.exitCode === 0 || error.code === "commander.help") return EXIT.done;
    reportFailure(context(), [usageDiagnostic(program, argv, error)]);
    return EXIT.failed;
  }
  if (error instanceof RlcliError) {
    reportFailure(context(), error.diagnostics);
    return EXIT.failed;
  }
  reportBug(error, argv);
  return EXIT.bug;
}

async function main(argv: readonly string[]): Promise<number> {
  let code: number = EXIT.done;
  let created: CommandContext | undefined;
  const outputClosed = watchOutput();
  const context = (): CommandContext => {
    // Where parsing failed, commander has not seen all options.
    const options = program.opts<GlobalOptions>();
    created ??= createContext({ ...options, json: options.json === true || argv.includes("--json") }, outputClosed);
    return created;
  };
  const program = createProgram(async (body) => {
    enterFolder(program.opts<GlobalOptions>().chdir);
    code = await body(context());
  });
  try {
    if (argv.length === 0) program.outputHelp();
    else await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    code = handleThrown(error, program, argv, context);
  }
  return code;
}

/** Waits until a stream has handed on what was written to it. */
function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write("", () => resolve()));
}

const code = await main(process.argv.slice(2));
await Promise.all([drained(process.stdout), drained(process.stderr)]);
// Handles that a command left open (idle connections) must not keep a finished command alive.
process.exit(code);
