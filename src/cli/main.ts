/**
 * The command line's entry: parses arguments, runs one command, turns what it throws into output and an exit code. Imports
 * nothing heavy; commands load their own.
 */
import { fail, messageOf } from "../diagnostic.ts";
import { type CommandContext, createContext, EXIT, type GlobalOptions, outputFault, watchOutput } from "./context.ts";
import { handleThrown } from "./failure.ts";
import { helpArguments } from "./help.ts";
import { createProgram } from "./program.ts";

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

const outputClosed = watchOutput();

async function main(given: readonly string[]): Promise<number> {
  let code: number = EXIT.done;
  let created: CommandContext | undefined;
  const context = (): CommandContext => {
    // Where parsing failed, commander has not seen all options.
    const { json, color } = program.opts<GlobalOptions>();
    const options = { json: json === true || argv.includes("--json"), color: color && !argv.includes("--no-color") };
    created ??= createContext(options, outputClosed);
    return created;
  };
  const program = createProgram(async (body) => {
    enterFolder(program.opts<GlobalOptions>().chdir);
    if (context().cwd === "") fail("RL9006", "The current folder no longer exists. Change to another one.");
    code = await body(context());
  });
  const argv = helpArguments(program, given);
  try {
    if (argv.length === 0) program.outputHelp();
    else await program.parseAsync(argv, { from: "user" });
  } catch (error) {
    code = handleThrown(error, { program, argv, context });
  }
  return code;
}

/** Waits until a stream has handed on what was written to it. */
function drained(stream: NodeJS.WriteStream): Promise<void> {
  return new Promise((resolve) => stream.write("", () => resolve()));
}

let code = await main(process.argv.slice(2));
await drained(process.stdout);
const fault = outputFault(outputClosed);
if (fault) {
  createContext({ color: !process.argv.includes("--no-color") }, outputClosed).report([fault]);
  code ||= EXIT.failed;
}
await drained(process.stderr);
// Handles that a command left open (idle connections) must not keep a finished command alive.
process.exit(code);
