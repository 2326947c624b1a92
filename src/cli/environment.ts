/** What the `env` commands work on: tasks of a folder, a dataset or a spec's environment, and a daemon to try them on. */
import { existsSync, statSync } from "node:fs";
import { isAbsolute, join } from "node:path";
import { type Diagnostic, fail, hasErrors, RlcliError } from "../diagnostic.ts";
import type { HarborOrder } from "../environment-order.ts";
import type { HarborTask } from "../environments/harbor/task.ts";
import type { TaskSet } from "../environments/harbor/tasks.ts";
import { shortPath } from "../files.ts";
import type { ProjectContext } from "../kind.ts";
import { isHarbor } from "../kinds/environment.ts";
import { harborOrder, harborTasks } from "../kinds/harbor.ts";
import type { SpecNode } from "../spec.ts";
import { listNames } from "../suggest.ts";
import { blockOf } from "./adhoc/work.ts";
import { adhocSpec } from "./adhoc.ts";
import type { CommandContext } from "./context.ts";
import { openWith } from "./open.ts";
import { type SpecOptions, specFiles } from "./options.ts";

export interface TaskFlags extends Partial<SpecOptions> {
  /** Of the spec, instead of tasks by folder or name. */
  readonly environment?: string;
  readonly registry?: string;
  readonly mirror?: string;
  readonly include?: readonly string[];
  readonly exclude?: readonly string[];
  readonly first?: number;
  readonly concurrency?: number;
  readonly host?: readonly string[];
  readonly network?: string;
  readonly security?: string;
  readonly keepFailed?: boolean;
  /** A duration. */
  readonly sandboxTimeout?: string;
}

export interface OpenTasks {
  readonly tasks: TaskSet["tasks"];
  readonly order: HarborOrder;
  readonly project: ProjectContext;
}

export type NamedTask = HarborTask & { readonly name: string };

/** Reports what is wrong with tasks that are left out. Fails with RL7206 to RL7208, or as a spec does. */
export async function openTaskSet(
  context: CommandContext,
  tasks: string | undefined,
  flags: TaskFlags,
  signal: AbortSignal,
): Promise<OpenTasks> {
  const { node, project } = await environmentOf(context, tasks, flags);
  const set = await harborTasks(node, project, signal);
  failOnErrors(set.diagnostics);
  context.report(set.diagnostics);
  return { tasks: set.tasks, order: harborOrder(node, set, project).harbor, project };
}

async function environmentOf(
  context: CommandContext,
  tasks: string | undefined,
  flags: TaskFlags,
): Promise<{ node: SpecNode; project: ProjectContext }> {
  if (tasks !== undefined && flags.environment !== undefined) fail("RL9003", "Give tasks or --environment, not both.");
  if (tasks === undefined) return environmentOfSpec(context, flags);
  const { file } = adhocSpec(context, "env", { environments: { tasks: harborBlock(context, tasks, flags) } });
  const { spec, context: project } = await openWith(context, { file: [shortPath(file, context.cwd)] });
  const node = spec?.nodes.get("environment.tasks");
  if (!node) throw new Error(`the spec ${file} has no environment`);
  return { node, project };
}

async function environmentOfSpec(context: CommandContext, flags: TaskFlags) {
  const { spec, context: project } = await openWith(context, flags);
  const all = [...(spec?.nodes.values() ?? [])].filter((node) => node.kind === "environment" && isHarbor(node));
  const name = flags.environment?.replace(/^environment\./, "");
  const [node, other] = name === undefined ? all : all.filter((one) => one.name === name);
  const named = listNames(all.map((one) => one.name));
  if (!node) {
    const has = all.length === 0 ? `has no environment of type \`harbor\`` : `has the environments ${named}`;
    fail(
      "RL9009",
      `${specFiles(flags.file, context.cwd)[0]} ${has}. Give a folder of tasks, name@version, or --environment NAME.`,
    );
  }
  if (other)
    fail("RL9003", `The spec has several environments of type \`harbor\`: say which with --environment: ${named}.`);
  return { node, project };
}

/** The block of the spec that tasks and options stand for. Paths in it are absolute. */
export function harborBlock(context: CommandContext, tasks: string, flags: TaskFlags): Record<string, unknown> {
  const path = (text: string | undefined) =>
    text === undefined || isAbsolute(text) || /^https?:/.test(text) ? text : join(context.cwd, text);
  const sandbox = blockOf({
    concurrency: flags.concurrency,
    host: flags.host,
    network: flags.network,
    security: flags.security,
    keep_failed: flags.keepFailed,
    lifetime: flags.sandboxTimeout,
  });
  return blockOf({
    type: "harbor",
    tasks: tasksPath(context, tasks),
    registry: path(flags.registry),
    mirror: path(flags.mirror),
    include: flags.include,
    exclude: flags.exclude,
    first: flags.first,
    sandbox: Object.keys(sandbox).length === 0 ? undefined : sandbox,
  });
}

function tasksPath({ cwd }: CommandContext, tasks: string): string {
  const path = isAbsolute(tasks) ? tasks : join(cwd, tasks);
  const isFolder = existsSync(path) && statSync(path).isDirectory();
  return /^\.{0,2}\//.test(tasks) || isFolder ? path : tasks;
}

function failOnErrors(diagnostics: readonly Diagnostic[]): void {
  if (hasErrors(diagnostics)) throw new RlcliError(diagnostics);
}
