/** Verbs that plan and apply a spec of their own: one way from flags to a plan, an apply, or the spec's text. */
import { createWriteStream, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { fail } from "../../diagnostic.ts";
import { digestFile, shortDigest } from "../../digest.ts";
import { shortPath, temporaryName } from "../../files.ts";
import type { PlanOptions } from "../../plan/file.ts";
import { isRemoteAddress } from "../../url.ts";
import { adhocSpec, emittedText, refuseCredentials } from "../adhoc.ts";
import { applyFresh } from "../commands/apply.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";

/** What every such verb can be told beside its own options. */
export interface WorkFlags {
  readonly dryRun?: boolean;
  readonly emitSpec?: boolean;
  readonly detach?: boolean;
  /** The folder of spec and records instead of one that its identity names. */
  readonly logPath?: string;
}

export interface AdhocWork {
  /** `train sl`: the verb, which tells its specs from those of others. */
  readonly verb: string;
  /** The spec without its version and project; paths in it are absolute, as the ad-hoc spec lies elsewhere. */
  readonly body: object;
  /** What tells one ad-hoc project from another. What is not in it (steps, say) extends or replaces what the same command began. */
  readonly identity: unknown;
  /** What can be done next, given how the spec's file is shown. */
  next?(file: string): string;
}

/** Prints the spec, shows its plan or carries it out, as the flags say. */
export async function doAdhoc(context: CommandContext, work: AdhocWork, flags: WorkFlags): Promise<ExitCode> {
  if (flags.emitSpec) {
    refuseCredentials(work.body);
    context.out(emittedText(context, work.body, flags));
    return EXIT.done;
  }
  const folder = flags.logPath === undefined ? undefined : resolve(context.cwd, flags.logPath);
  const { file } = adhocSpec(context, work.verb, work.body, work.identity, folder);
  const options = optionsFor(shortPath(file, context.cwd));
  if (flags.dryRun) return dryRun(context, options);
  const code = await applyFresh(context, options, { autoApprove: true, detach: flags.detach ?? false });
  const isSilent = context.isJson || flags.detach;
  if (isSilent) return code;
  if (code !== EXIT.done)
    context.err(
      `This command's spec is ${shortPath(file, context.cwd)}: other commands find it with -f. The same command again goes on.\n`,
    );
  else if (work.next) context.out(`\n${work.next(shortPath(file, context.cwd))}\n`);
  return code;
}

export function optionsFor(file: string): PlanOptions {
  return { files: [file], variables: {}, variableFiles: [], targets: [], replace: [], destroy: false };
}

async function dryRun(context: CommandContext, options: PlanOptions): Promise<ExitCode> {
  const { makePlan, showPlan } = await import("../commands/plan.ts");
  const { open, planned } = await makePlan(context, options);
  context.report(planned.diagnostics);
  if (planned.isValid) showPlan(context, open, planned);
  return planned.isValid ? EXIT.done : EXIT.failed;
}

/** The absolute path of a dataset file, or its address; standard input as a file named by its content, so that the same rows are the same dataset. */
export async function datasetFile(context: CommandContext, name: string): Promise<string> {
  if (name === "-") return spool(context);
  if (isRemoteAddress(name)) return name;
  const path = isAbsolute(name) ? name : join(context.cwd, name);
  if (!existsSync(path))
    fail("RL9009", `The dataset ${name} does not exist. Give a JSONL file, or - to read from standard input.`);
  return path;
}

/** How a dataset tells ad-hoc projects apart: by its path, or where it was piped in by its content. */
export function datasetIdentity(context: CommandContext, name: string, file: string): string {
  return name === "-" || name.includes("://") ? file : resolve(context.cwd, name);
}

async function spool(context: CommandContext): Promise<string> {
  if (process.stdin.isTTY) fail("RL9003", "--dataset - reads rows from standard input, and nothing is piped in.");
  const folder = join(context.cwd, ".rlcli", "adhoc", "spool");
  mkdirSync(folder, { recursive: true });
  const temporary = temporaryName(join(folder, "stdin"));
  try {
    await pipeline(process.stdin, createWriteStream(temporary));
    const path = join(folder, `${shortDigest(await digestFile(temporary))}.jsonl`);
    renameSync(temporary, path);
    return path;
  } finally {
    rmSync(temporary, { force: true });
  }
}

/** A block of the spec from what was said; what was not is left to its default. */
export function blockOf(fields: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
