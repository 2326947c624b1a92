/** `rlcli plan`: what apply would do, and why. Takes no lock and changes nothing. */
import { writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { type Address, KINDS, parseAddress } from "../../address.ts";
import { type Diagnostic, fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { replaceable, writeFileWhole } from "../../files.ts";
import { encodePlan, PLAN_VERSION, type PlanOptions, recordVersions, type SavedPlan } from "../../plan/file.ts";
import { hasChanges } from "../../plan/plan.ts";
import { type CommandContext, EXIT, type ExitCode, reportFailure, VERSION } from "../context.ts";
import { type SpecOptions, specFiles } from "../options.ts";
import { type OpenProject, openProject, type PlannedProject, planProject } from "../project.ts";
import { parseVariables } from "../spec.ts";
import { renderPlan, sumEstimates } from "../views/plan.ts";

export interface PlanFlags extends Partial<SpecOptions> {
  readonly target?: readonly string[];
  readonly replace?: readonly string[];
  readonly destroy?: boolean;
  /** Whether names that rlcli.lock lacks are an error; where neither is said, CI decides. */
  readonly locked?: boolean;
}

export interface PlanCommandFlags extends PlanFlags {
  readonly detailedExitcode?: boolean;
  readonly out?: string;
  readonly markdown?: boolean;
}

export async function plan(context: CommandContext, flags: PlanCommandFlags): Promise<ExitCode> {
  if (flags.markdown && context.isJson)
    fail("RL9003", "--markdown and --json are two ways to print a plan. Leave one of them out.");
  const options = planOptions(context, flags);
  const { open, planned } = flags.markdown
    ? await orMarkdown(context, makePlan(context, options, flags))
    : await makePlan(context, options, flags);
  if (!planned.isValid) {
    if (flags.markdown) await showMarkdownFailure(context, planned.diagnostics);
    reportFailure(context, planned.diagnostics);
    return EXIT.failed;
  }
  context.report(planned.diagnostics);
  if (flags.out !== undefined) savePlan(context, flags.out, options, open, planned);
  if (flags.markdown) {
    const { renderMarkdownPlan } = await import("../views/markdown.ts");
    const { changes, queues } = planned.plan;
    context.out(
      renderMarkdownPlan({ project: open.context.project, changes, queues, diagnostics: planned.diagnostics }),
    );
  } else showPlan(context, open, planned);
  if (flags.out !== undefined && !context.isJson && !flags.markdown)
    context.out(`\nSaved. To carry out exactly this plan: rlcli apply ${flags.out}\n`);
  return flags.detailedExitcode && hasChanges(planned.plan.changes) ? EXIT.changes : EXIT.done;
}

/** What stands in the way of a plan is told where the plan would be, too: a comment is all that a reviewer sees. */
async function orMarkdown<T>(context: CommandContext, planning: Promise<T>): Promise<T> {
  try {
    return await planning;
  } catch (error) {
    if (error instanceof RlcliError) await showMarkdownFailure(context, error.diagnostics);
    throw error;
  }
}

async function showMarkdownFailure(context: CommandContext, diagnostics: readonly Diagnostic[]): Promise<void> {
  const { renderMarkdownFailure } = await import("../views/markdown.ts");
  context.out(renderMarkdownFailure(diagnostics));
}

export function planOptions(context: CommandContext, flags: PlanFlags): PlanOptions {
  if (flags.destroy && flags.replace !== undefined)
    fail("RL9003", "--destroy ends what --replace would make anew. Leave one of them out.");
  return {
    files: specFiles(flags.file, context.cwd),
    variables: parseVariables(flags.var ?? []),
    variableFiles: flags.varFile ?? [],
    targets: (flags.target ?? []).map(toAddress),
    replace: (flags.replace ?? []).map(toAddress),
    destroy: flags.destroy ?? false,
  };
}

export function toAddress(text: string): Address {
  if (parseAddress(text)) return text as Address;
  return fail(
    "RL9003",
    `\`${text}\` is not an address. An address is a kind and a name, for example run.agent; kinds are ${KINDS.join(", ")}.`,
  );
}

export async function makePlan(
  context: CommandContext,
  options: PlanOptions,
  { locked }: Pick<PlanFlags, "locked"> = {},
): Promise<{ open: OpenProject; planned: PlannedProject }> {
  const open = await openProject({
    files: options.files,
    variables: options.variables,
    variableFiles: options.variableFiles,
    cwd: context.cwd,
    env: context.env,
    ...(locked === undefined ? {} : { lockMode: locked ? "locked" : "add" }),
  });
  if (!open.spec) throw new RlcliError(open.diagnostics);
  const signal = context.outputClosed;
  const { targets, replace, destroy } = options;
  return { open, planned: await planProject(open, { targets, replace, destroy, signal }) };
}

export const PLAN_JSON_VERSION = 1;

export function showPlan(
  context: CommandContext,
  open: OpenProject,
  { plan: result, diagnostics }: PlannedProject,
): void {
  if (!context.isJson) {
    context.out(renderPlan(result.changes, result.queues, context.style));
    return;
  }
  const counts: Record<string, number> = {};
  for (const { action } of result.changes) counts[action] = (counts[action] ?? 0) + 1;
  const estimate = sumEstimates(result.changes);
  const json = {
    formatVersion: PLAN_JSON_VERSION,
    rlcli: VERSION,
    project: open.context.project,
    changes: result.changes,
    queues: result.queues,
    summary: { counts, ...(estimate ? { estimate } : {}), hasChanges: hasChanges(result.changes) },
    diagnostics,
  };
  context.out(`${JSON.stringify(json)}\n`);
}

function savePlan(
  context: CommandContext,
  name: string,
  options: PlanOptions,
  open: OpenProject,
  planned: PlannedProject,
): void {
  const saved: SavedPlan = {
    formatVersion: PLAN_VERSION,
    rlcli: VERSION,
    createdAt: new Date().toISOString(),
    project: open.context.project,
    ...(planned.lineage === undefined ? {} : { lineage: planned.lineage }),
    options,
    inputs: planned.inputs,
    records: recordVersions(planned.records),
    changes: planned.plan.changes,
  };
  const path = resolve(context.cwd, name);
  try {
    const file = replaceable(path);
    if (file === undefined) writeFileSync(path, encodePlan(saved));
    else writeFileWhole(file, encodePlan(saved));
  } catch (error) {
    fail("RL9007", `The plan could not be written to ${name}: ${messageOf(error)}.`);
  }
}
