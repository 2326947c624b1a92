/** Opening the project that a command's flags name. Apart from `spec.ts`, which light commands load without any of this. */
import { RlcliError } from "../diagnostic.ts";
import type { CommandContext } from "./context.ts";
import { type SpecOptions, specFiles } from "./options.ts";
import { type OpenOptions, type OpenProject, openProject } from "./project.ts";
import { parseVariables } from "./spec.ts";

/** The project that the flags name, whole: warnings are printed, errors thrown. */
export async function openWith(
  context: CommandContext,
  options: Partial<SpecOptions>,
  more: Pick<OpenOptions, "lockMode"> = {},
): Promise<OpenProject> {
  const open = await openProject({
    files: specFiles(options.file, context.cwd),
    variables: parseVariables(options.var ?? []),
    variableFiles: options.varFile ?? [],
    env: context.env,
    cwd: context.cwd,
    ...more,
  });
  if (open.spec === undefined) throw new RlcliError(open.diagnostics);
  context.report(open.diagnostics);
  return open;
}
