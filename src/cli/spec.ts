/** Loading the spec that a command works on. */
import { type LoadResult, loadSpec } from "../config/load.ts";
import { type Diagnostic, diagnostic, RlcliError } from "../diagnostic.ts";
import type { CommandContext } from "./context.ts";
import { type SpecOptions, specFiles } from "./options.ts";

/** `--var a=1` pairs by name; the last of a name wins. Throws for all that are not pairs. */
export function parseVariables(pairs: readonly string[]): Record<string, string> {
  const variables: Record<string, string> = Object.create(null);
  const faults: Diagnostic[] = [];
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at > 0) variables[pair.slice(0, at)] = pair.slice(at + 1);
    else faults.push(diagnostic("RL9003", `--var takes NAME=VALUE; \`${pair}\` has no name before an equals sign.`));
  }
  if (faults.length > 0) throw new RlcliError(faults);
  return variables;
}

/** The spec with all its diagnostics, for a command whose result they are. */
export async function loadSpecFor(context: CommandContext, options: Partial<SpecOptions>): Promise<LoadResult> {
  return loadSpec({
    files: specFiles(options.file, context.cwd),
    variables: parseVariables(options.var ?? []),
    variableFiles: options.varFile ?? [],
    env: context.env,
    cwd: context.cwd,
  });
}
