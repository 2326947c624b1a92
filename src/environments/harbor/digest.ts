/** Harbor's content digest of a task: what names the same task on every machine. Modes are not part of it. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Digest, digestBytes } from "../../digest.ts";
import { gitIgnore, type IgnoreRules } from "../sandbox/ignore.ts";

const FILES = ["task.toml", "instruction.md", "README.md", "trajectory.json"];
const FOLDERS = ["environment", "tests", "solution", "steps"];
/** Of a task without a `.gitignore`. */
const USUAL_IGNORES = "__pycache__/\n*.pyc\n.DS_Store\n*.swp\n*.swo\n*~\n";
/** Folders in which `.harborignore` files count. */
const HARBOR_IGNORED = /^(?:tests|solution|steps\/[^/]+\/(?:tests|solution))\//;

/** sha256 over `path NUL sha256 LF` of the task's files, sorted by path. */
export function taskDigest(folder: string): Digest {
  const lines = taskFiles(folder).map((path) => {
    const digest = digestBytes(readFileSync(join(folder, path))).slice("sha256:".length);
    return `${path}\0${digest}\n`;
  });
  return digestBytes(lines.join(""));
}

/** Sorted paths, with `/`. A link to a file counts with the file's bytes; linked folders are not entered. */
export function taskFiles(folder: string): readonly string[] {
  const gitignore = join(folder, ".gitignore");
  const rules = gitIgnore(existsSync(gitignore) ? readFileSync(gitignore, "utf8") : USUAL_IGNORES);
  const found = FILES.filter((name) => existsSync(join(folder, name)));
  for (const name of FOLDERS) walk(folder, name, [], found);
  return found.filter((path) => !rules.ignores(path)).sort((a, b) => (a < b ? -1 : 1));
}

type Scoped = readonly { readonly below: string; readonly rules: IgnoreRules }[];

function walk(folder: string, below: string, inherited: Scoped, found: string[]): void {
  const at = join(folder, below);
  if (!existsSync(at)) return;
  const ignoreFile = join(at, ".harborignore");
  const counts = HARBOR_IGNORED.test(`${below}/`) && existsSync(ignoreFile);
  const scoped = counts ? [...inherited, { below, rules: gitIgnore(readFileSync(ignoreFile, "utf8")) }] : inherited;
  for (const entry of readdirSync(at, { withFileTypes: true })) {
    const path = `${below}/${entry.name}`;
    const isFolder = entry.isDirectory();
    if (scoped.some(({ below: scope, rules }) => rules.ignores(path.slice(scope.length + 1)))) continue;
    if (isFolder) walk(folder, path, scoped, found);
    else if (entry.isFile() || (entry.isSymbolicLink() && isFile(join(folder, path)))) found.push(path);
  }
}

function isFile(path: string): boolean {
  try {
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
