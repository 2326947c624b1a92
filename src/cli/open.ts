/** Opening the project that a command's flags name. Apart from `spec.ts`, which light commands load without any of this. */
import { existsSync } from "node:fs";
import { RlcliError } from "../diagnostic.ts";
import type { CommandContext } from "./context.ts";
import { type SpecOptions, specFiles } from "./options.ts";
import { type OpenOptions, type OpenProject, openProject } from "./project.ts";
import { parseVariables } from "./spec.ts";

type More = Pick<OpenOptions, "lockMode">;

const openNamed = (context: CommandContext, options: Partial<SpecOptions>, more: More = {}): Promise<OpenProject> =>
  openProject({
    files: specFiles(options.file, context.cwd),
    variables: parseVariables(options.var ?? []),
    variableFiles: options.varFile ?? [],
    env: context.env,
    cwd: context.cwd,
    ...more,
  });

/**
 * What lies beside the spec that the flags name, also where the spec is gone or does not load. Throws why it does not where nothing lies
 * there and the file was named: it is misspelt, more likely.
 */
export async function openBeside(
  context: CommandContext,
  options: Partial<SpecOptions>,
): Promise<Pick<OpenProject, "store" | "context">> {
  const open = await openNamed(context, options);
  if (open.spec !== undefined) context.report(open.diagnostics);
  else if (options.file !== undefined && !existsSync(open.context.dataFolder)) throw new RlcliError(open.diagnostics);
  return open;
}

/** The project that the flags name, whole: warnings are printed, errors thrown. */
export async function openWith(
  context: CommandContext,
  options: Partial<SpecOptions>,
  more: More = {},
): Promise<OpenProject> {
  const open = await openNamed(context, options, more);
  if (open.spec === undefined) throw new RlcliError(open.diagnostics);
  context.report(open.diagnostics);
  return open;
}
