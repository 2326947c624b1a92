/** `rlcli completion SHELL` prints a script for a shell; `rlcli __complete -- WORDS…` answers it, at every press of Tab. */
import type { Command } from "commander";
import { packagePath } from "../../entry.ts";
import { quoted } from "../../shell.ts";
import { type Candidate, type Completion, complete, specFilesOf } from "../completion/complete.ts";
import { completionScript, INSTALL, type Shell } from "../completion/scripts.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { DEFAULT_SPEC_FILE } from "../options.ts";

export async function completion(context: CommandContext, shell: Shell): Promise<ExitCode> {
  const script = completionScript(shell, `${quoted(process.execPath)} ${quoted(packagePath("bin/rlcli.js"))}`);
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: 1, shell, script, install: INSTALL[shell] })}\n`);
    return EXIT.done;
  }
  context.out(script);
  if (context.isTerminal) context.err(`\nTo switch it on: ${INSTALL[shell]}\n`);
  return EXIT.done;
}

/** Never fails: a shell has no use for what is wrong with a line that is being typed. */
export async function answerShell(
  context: CommandContext,
  program: Command,
  words: readonly string[],
): Promise<ExitCode> {
  const asked = complete(program, words);
  const named = await namesFor(context, program, words, asked);
  const isListed = new Set(asked.candidates.map(({ value }) => value));
  const all = [...asked.candidates, ...named.filter(({ value }) => !isListed.has(value))];
  const fitting = all.filter(({ value }) => value.startsWith(asked.typed));
  const lines = fitting.map(({ value, about }) => `${asked.prefix}${value}\t${about}`);
  context.out([...lines, `:${directiveOf(asked, fitting)}`, ""].join("\n"));
  return EXIT.done;
}

/** What reads a spec or the schema is loaded only where it is asked for. */
async function namesFor(
  { cwd }: CommandContext,
  program: Command,
  words: readonly string[],
  { wanted, typed }: Completion,
): Promise<readonly Candidate[]> {
  if (wanted === "file" || wanted === "folder" || wanted === "nothing") return [];
  if (wanted === "topic") return (await import("../completion/topics.ts")).topicsFor(typed);
  const files = specFilesOf(program, words);
  return (await import("../completion/names.ts")).namesOf(wanted, files.length > 0 ? files : [DEFAULT_SPEC_FILE], cwd);
}

function directiveOf({ wanted }: Completion, fitting: readonly Candidate[]): string {
  if (wanted === "file" || wanted === "folder") return wanted;
  return wanted === "variable" || (wanted === "topic" && fitting.length !== 1) ? "open" : "done";
}
