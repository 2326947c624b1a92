/** `rlcli init [DIR]`: a new spec from a template. */
import { constants, copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";
import { packagePath } from "../../entry.ts";
import { isFileSystemError } from "../../files.ts";
import { dockerVersion } from "../../servers/machine.ts";
import { listNames } from "../../suggest.ts";
import { canAsk, Unanswered } from "../ask.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { type Chosen, choose, type InitFlags } from "../init/choose.ts";
import { chosenSpec } from "../init/spec-text.ts";
import { DEFAULT_SPEC_FILE } from "../options.ts";

export type { InitFlags } from "../init/choose.ts";

const IGNORE_FILE = ".gitignore";
/** What rlcli writes beside a spec and no one commits. */
const IGNORED = ".rlcli/\n";

export async function init(context: CommandContext, dir: string, flags: InitFlags): Promise<ExitCode> {
  const to = resolve(context.cwd, dir);
  // Before any question is asked.
  refuseTaken(to, [DEFAULT_SPEC_FILE]);
  let chosen: Chosen;
  try {
    chosen = await choose(to, flags, !flags.yes && canAsk(context));
  } catch (error) {
    if (!(error instanceof Unanswered)) throw error;
    context.err("\nNothing was written.\n");
    return EXIT.interrupted;
  }
  const notes = [...chosen.notes, ...(await dockerNote(chosen))];
  let files: readonly string[];
  try {
    files = write(to, chosen);
  } catch (error) {
    if (!isFileSystemError(error)) throw error;
    return fail(
      "RL9007",
      `Cannot write to ${to}: ${messageOf(error)}. Name a folder that you may write to: \`rlcli init DIR\`.`,
      { cause: error },
    );
  }
  report(context, to, chosen, files, notes);
  return EXIT.done;
}

async function dockerNote({ template }: Chosen): Promise<string[]> {
  if (!template.needsDocker) return [];
  const version = await dockerVersion();
  return version === undefined
    ? ["No Docker daemon answers here, and the tasks run in containers: start one, or set DOCKER_HOST."]
    : [`Found a Docker daemon, version ${version}.`];
}

function report(
  context: CommandContext,
  to: string,
  { template, isFull, project }: Chosen,
  files: readonly string[],
  notes: readonly string[],
): void {
  const folder = relative(context.cwd, to);
  const next = [
    ...(folder === "" ? [] : [`cd ${folder}`]),
    ...(isFull ? ["rlcli apply --smoke"] : (template.before ?? [])),
    "rlcli plan",
  ];
  if (context.isJson) {
    const result = { formatVersion: 1, folder: to, template: template.name, project, files, notes, next };
    context.out(`${JSON.stringify(result, null, 2)}\n`);
    return;
  }
  for (const note of notes) context.out(`${note}\n`);
  context.out(`Wrote ${listNames(files, 20).replaceAll("`", "")} to ${to}.\n\nNext:\n`);
  for (const line of next) context.out(`  ${context.style.bold(line)}\n`);
}

function refuseTaken(to: string, files: readonly string[]): void {
  const taken = files.filter((file) => existsSync(join(to, file)));
  if (taken.length === 0) return;
  fail(
    "RL9004",
    `${listNames(taken)} ${taken.length === 1 ? "is" : "are"} already in ${to}. Nothing was written; name another folder: \`rlcli init DIR\`.`,
  );
}

/** What was written, folders as one. */
function write(to: string, { template, isFull, project, server, logs }: Chosen): readonly string[] {
  const form = isFull && template.full ? template.full : template.small;
  // A log of the user's own takes the place of the template's.
  const copied = logs === undefined ? form.files : form.files.filter((file) => file.to !== "traces.jsonl");
  refuseTaken(to, [DEFAULT_SPEC_FILE, ...copied.map((file) => file.to)]);
  const text = chosenSpec(readFileSync(packagePath(form.spec), "utf8"), {
    project,
    ...(server ? { server } : {}),
    ...(logs && template.logs ? { logs: { dataset: template.logs, ...logs } } : {}),
  });
  mkdirSync(to, { recursive: true });
  // Exclusive, in case one appeared since.
  writeFileSync(join(to, DEFAULT_SPEC_FILE), text, { flag: "wx" });
  for (const file of copied) copyTree(packagePath(file.from), join(to, file.to));
  const files = [DEFAULT_SPEC_FILE, ...copied.map((file) => file.to)];
  if (existsSync(join(to, IGNORE_FILE))) return files;
  writeFileSync(join(to, IGNORE_FILE), IGNORED, { flag: "wx" });
  return [...files, IGNORE_FILE];
}

function copyTree(from: string, to: string): void {
  const entries = (() => {
    try {
      return readdirSync(from);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOTDIR") return undefined;
      throw error;
    }
  })();
  mkdirSync(entries === undefined ? dirname(to) : to, { recursive: true });
  if (entries === undefined) copyFileSync(from, to, constants.COPYFILE_EXCL);
  else for (const entry of entries) copyTree(join(from, entry), join(to, entry));
}
