/** `rlcli init [DIR]`: a new spec from a template. */
import {
  constants,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";
import { packagePath } from "../../entry.ts";
import { isFileSystemError } from "../../files.ts";
import { dockerVersion } from "../../servers/machine.ts";
import { shellWord } from "../../shell.ts";
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
    ...(folder === "" ? [] : [`cd ${shellWord(folder.startsWith("-") ? `./${folder}` : folder)}`]),
    ...(isFull ? ["rlcli apply --smoke"] : (template.before ?? [])),
    "rlcli plan",
  ];
  if (context.isJson) {
    const result = { formatVersion: 1, folder: to, template: template.name, project, files, notes, next };
    context.out(`${JSON.stringify(result, null, 2)}\n`);
    return;
  }
  for (const note of notes) context.out(`${note}\n`);
  context.out(
    `Wrote ${listNames(files, 20).replaceAll("`", "")} to ${to}, from the template ${template.name}.\n\nNext:\n`,
  );
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
  // Exclusive, in case one appeared since.
  const put = (words: string) => (path: string) => writeFileSync(path, words, { flag: "wx" });
  const files = new Map<string, (path: string) => void>([
    [DEFAULT_SPEC_FILE, put(text)],
    ...copied.map((file) => [file.to, (path: string) => copyTree(packagePath(file.from), path)] as const),
    ...(existsSync(join(to, IGNORE_FILE)) ? [] : [[IGNORE_FILE, put(IGNORED)] as const]),
  ]);
  mkdirSync(to, { recursive: true });
  return writeAll(to, files);
}

/** All or none: half a project would stand in the way of the next try. */
function writeAll(to: string, files: ReadonlyMap<string, (path: string) => void>): readonly string[] {
  const made: string[] = [];
  try {
    for (const [name, write] of files) {
      made.push(name);
      write(join(to, name));
    }
    return made;
  } catch (error) {
    // What was there in spite of all is somebody else's.
    if ((error as NodeJS.ErrnoException).code === "EEXIST") made.pop();
    for (const name of made) rmSync(join(to, name), { recursive: true, force: true });
    throw error;
  }
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
