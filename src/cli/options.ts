/** Options that several commands share, each group bound by one function. Only commander and Node are imported here. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Command, InvalidArgumentError } from "commander";

/** Which spec, and the values of its variables. */
export interface SpecOptions {
  readonly file: readonly string[];
  readonly var: readonly string[];
  readonly varFile: readonly string[];
}

export const DEFAULT_SPEC_FILE = "rlcli.yaml";
/** Specs that are programs, in the order in which they are looked for. */
const PROGRAM_FILES = ["rlcli.config.ts", "rlcli.config.mts", "rlcli.config.mjs", "rlcli.config.js"];

/** The spec files of a command: those that are named, else the folder's own. */
export function specFiles(file: readonly string[] | undefined, cwd: string): readonly string[] {
  if (file !== undefined) return file;
  const found = [DEFAULT_SPEC_FILE, ...PROGRAM_FILES].find((name) => existsSync(join(cwd, name)));
  return [found ?? DEFAULT_SPEC_FILE];
}

/** For options that may be given more than once. */
export const repeat = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value];

/** `-f` may be taken by a command that has another use for the letter (`logs -f`). */
export function bindSpecOptions(command: Command, { hasShort = true }: { hasShort?: boolean } = {}): Command {
  return command
    .option(
      `${hasShort ? "-f, " : ""}--file <file>`,
      `spec file; given again, a later one is laid over the earlier (default: ${DEFAULT_SPEC_FILE}, else rlcli.config.ts or .mjs)`,
      repeat,
    )
    .option("--var <name=value>", "set a variable of the spec", repeat)
    .option("--var-file <file>", "set variables from a YAML or JSON file", repeat);
}

/** A whole number of at least `least`, and at most `most`. */
export function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (value: string) => number {
  const range = most === Number.MAX_SAFE_INTEGER ? `of at least ${least}` : `from ${least} to ${most}`;
  return (value) => {
    const number = Number(value);
    if (!/^\d+$/.test(value) || number < least || number > most)
      throw new InvalidArgumentError(`It takes a whole number ${range}.`);
    return number;
  };
}

/** A TCP port; 0 for a free one. */
export const portNumber = wholeNumber(0, 65_535);

export function positive(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number) || number <= 0)
    throw new InvalidArgumentError("It takes a number above 0.");
  return number;
}

/** Above 0 and at most 1. */
export function share(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !(number > 0 && number <= 1))
    throw new InvalidArgumentError("It takes a number above 0 and at most 1.");
  return number;
}

/** Above 0 and below 1. */
export function shareBelowOne(value: string): number {
  const number = share(value);
  if (number === 1) throw new InvalidArgumentError("It takes a number above 0 and below 1.");
  return number;
}

export function anyNumber(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number)) throw new InvalidArgumentError("It takes a number.");
  return number;
}

export function nonNegative(value: string): number {
  const number = Number(value);
  if (value.trim() === "" || !Number.isFinite(number) || number < 0)
    throw new InvalidArgumentError("It takes a number of at least 0.");
  return number;
}
