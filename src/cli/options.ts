/** Options that several commands share, each group bound by one function. Only commander is imported here. */
import type { Command } from "commander";

/** Which spec, and the values of its variables. */
export interface SpecOptions {
  readonly file: readonly string[];
  readonly var: readonly string[];
  readonly varFile: readonly string[];
}

export const DEFAULT_SPEC_FILE = "rlcli.yaml";

const append = (value: string, before: readonly string[] | undefined): string[] => [...(before ?? []), value];

/** `-f` may be taken by a command that has another use for the letter (`logs -f`). */
export function bindSpecOptions(command: Command, { hasShort = true }: { hasShort?: boolean } = {}): Command {
  return command
    .option(
      `${hasShort ? "-f, " : ""}--file <file>`,
      `spec file; given again, a later one is laid over the earlier (default: ${DEFAULT_SPEC_FILE})`,
      append,
    )
    .option("--var <name=value>", "set a variable of the spec", append)
    .option("--var-file <file>", "set variables from a YAML or JSON file", append);
}
