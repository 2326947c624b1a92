/** `rlcli init [DIR]`: a new spec from a template. */
import { constants, copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";
import { packagePath } from "../../entry.ts";
import { isFileSystemError } from "../../files.ts";
import { didYouMean, listNames } from "../../suggest.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";

/** Templates are examples of the package; the first line of each is for `--help` and for faults. */
const TEMPLATES: Readonly<Record<string, string>> = {
  quickstart: "a chat log, the embedded server and one supervised run",
};

/** Of an example, what a user starts from; scripts that show the example off stay behind. */
const COPIED = /\.(ya?ml|jsonl|md)$/;

const IGNORE_FILE = ".gitignore";
/** What rlcli writes beside a spec and no one commits. */
const IGNORED = ".rlcli/\n";

function templateFolder(name: string): string {
  if (!Object.hasOwn(TEMPLATES, name)) {
    const hint = didYouMean(name, Object.keys(TEMPLATES)) || ` There is ${listNames(Object.keys(TEMPLATES))}.`;
    fail("RL9003", `There is no template \`${name}\`.${hint}`);
  }
  return packagePath(`examples/${name}`);
}

function copyTemplate(from: string, to: string): string[] {
  const files = readdirSync(from).filter((file) => COPIED.test(file));
  const taken = files.filter((file) => existsSync(join(to, file)));
  if (taken.length > 0)
    fail(
      "RL9004",
      `${listNames(taken)} ${taken.length === 1 ? "is" : "are"} already in ${to}. Nothing was written; name another folder: \`rlcli init DIR\`.`,
    );
  mkdirSync(to, { recursive: true });
  // Exclusive, in case one appeared since.
  for (const file of files) copyFileSync(join(from, file), join(to, file), constants.COPYFILE_EXCL);
  if (existsSync(join(to, IGNORE_FILE))) return files;
  writeFileSync(join(to, IGNORE_FILE), IGNORED, { flag: "wx" });
  return [...files, IGNORE_FILE];
}

export async function init(
  context: CommandContext,
  dir: string,
  options: { readonly template: string },
): Promise<ExitCode> {
  const from = templateFolder(options.template);
  const to = resolve(context.cwd, dir);
  let files: string[];
  try {
    files = copyTemplate(from, to);
  } catch (error) {
    if (!isFileSystemError(error)) throw error;
    fail("RL9007", `Cannot write to ${to}: ${messageOf(error)}.`, { cause: error });
  }
  const next = [...(relative(context.cwd, to) === "" ? [] : [`cd ${relative(context.cwd, to)}`]), "rlcli plan"];
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, folder: to, files, next }, null, 2)}\n`);
  else {
    context.out(`Wrote ${listNames(files, 20).replaceAll("`", "")} to ${to}.\n\nNext:\n`);
    for (const line of next) context.out(`  ${context.style.bold(line)}\n`);
  }
  return EXIT.done;
}
