/** What a thrown value means: help is done, a user's fault is reported, anything else is a bug and says so. */
import { type Command, CommanderError } from "commander";
import { diagnostic, messageOf, RlcliError } from "../diagnostic.ts";
import { isFileSystemError } from "../files.ts";
import { type CommandContext, EXIT, type ExitCode, reportFailure, VERSION } from "./context.ts";
import { helpOf, usageDiagnostic, withoutSpec } from "./usage.ts";

/** The words that are safe to repeat in a report: the leading names of commands, and names of options. Values may be secret. */
function commandWords(argv: readonly string[], program: Command): string {
  let at = program;
  return argv
    .map((arg) => {
      if (arg.startsWith("-")) return /^(--[a-z-]+|-[a-z])/i.exec(arg)?.[0] ?? "…";
      const next = at.commands.find((command) => command.name() === arg);
      if (next === undefined) return "…";
      at = next;
      return arg;
    })
    .join(" ");
}

export function bugReport(error: unknown, argv: readonly string[], program: Command): string {
  const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return [
    "This is a bug in rlcli, not a mistake of yours. Please report it with the lines below.",
    "",
    `rlcli ${VERSION}, Node ${process.version}, ${process.platform} ${process.arch}`,
    `command: rlcli ${commandWords(argv, program)}`,
    stack,
    "",
  ].join("\n");
}

/** What a file system says no with whatever a program does. A file that is missing is not among them: that is known before. */
const REFUSALS = new Set([
  "EACCES",
  "EPERM",
  "EROFS",
  "ENOSPC",
  "EDQUOT",
  "EMFILE",
  "ENFILE",
  "EIO",
  "ENAMETOOLONG",
  "ENOTDIR",
  "EISDIR",
]);

function isRefusal(error: unknown): error is NodeJS.ErrnoException {
  return isFileSystemError(error) && REFUSALS.has(error.code ?? "");
}

export interface Invocation {
  readonly program: Command;
  readonly argv: readonly string[];
  /** Made when needed: making it may itself fail. */
  context(): CommandContext;
}

export function handleThrown(error: unknown, { program, argv, context }: Invocation): ExitCode {
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.done;
  const diagnostics =
    error instanceof CommanderError
      ? [usageDiagnostic(program, argv, error)]
      : error instanceof RlcliError
        ? withoutSpec(program, argv, error.diagnostics)
        : isRefusal(error)
          ? [diagnostic("RL9010", `${messageOf(error)}.`)]
          : undefined;
  if (diagnostics === undefined) {
    process.stderr.write(bugReport(error, argv, program));
    return EXIT.bug;
  }
  reportFailure(context(), diagnostics, helpOf(program, argv));
  return EXIT.failed;
}
