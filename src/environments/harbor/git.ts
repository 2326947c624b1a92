/** Tasks out of git repositories: only the folders that are wanted, at one commit, copied into a cache by what they are. */
import { cpSync, existsSync, lstatSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { execa } from "execa";
import { fail } from "../../diagnostic.ts";
import { digestJson, shortDigest } from "../../digest.ts";
import { temporaryName } from "../../files.ts";
import { takeTurn } from "../../turn.ts";

export interface GitTask {
  readonly url: string;
  /** 40 or 64 hex digits. */
  readonly commit: string;
  /** Within the repository. */
  readonly path: string;
}

const isCommit = (text: string): boolean => /^(?:[0-9a-f]{40}|[0-9a-f]{64})$/.test(text);

/** Where a task lies once it is here; the same for the same commit for ever. */
export function cachedFolder(cacheFolder: string, { url, commit, path }: GitTask): string {
  const name = path.split("/").filter(Boolean).at(-1) ?? "task";
  return join(cacheFolder, "harbor", "tasks", shortDigest(digestJson({ url, commit, path })), name);
}

/** The commit that a branch or tag stands for now; HEAD where none is named. Fails with RL7207. */
export async function resolveCommit(url: string, ref: string | undefined, signal: AbortSignal): Promise<string> {
  if (ref !== undefined && isCommit(ref)) return ref;
  const wanted = ref === undefined ? ["HEAD"] : [ref, `${ref}^{}`];
  const listed = await git(["ls-remote", "--", url, ...wanted], undefined, signal);
  const lines = listed.split("\n").filter((line) => line !== "");
  // A tag's own commit stands in the line that ends in ^{}.
  const line = lines.find((one) => one.endsWith("^{}")) ?? lines[0];
  const commit = line?.split("\t")[0];
  return commit ?? fail("RL7207", `The repository ${url} has no \`${ref ?? "HEAD"}\`.`);
}

/** Fetches those that are not here yet, one checkout for each repository and commit. Fails with RL7207. */
export async function fetchTasks(tasks: readonly GitTask[], cacheFolder: string, signal: AbortSignal): Promise<void> {
  const groups = new Map<string, GitTask[]>();
  for (const task of tasks) {
    checkPath(task);
    if (existsSync(cachedFolder(cacheFolder, task))) continue;
    const key = JSON.stringify([task.url, task.commit]);
    groups.set(key, [...(groups.get(key) ?? []), task]);
  }
  for (const group of groups.values()) await fetchGroup(group, cacheFolder, signal);
}

function checkPath({ path, url }: GitTask): void {
  if (path.startsWith("/") || path.split("/").includes(".."))
    fail("RL7207", `The path \`${path}\` of a task leads out of its repository ${url}.`);
}

async function fetchGroup(group: readonly GitTask[], cacheFolder: string, signal: AbortSignal): Promise<void> {
  const { url, commit } = group[0] as GitTask;
  const repository = join(cacheFolder, "harbor", "git", shortDigest(digestJson({ url })));
  const unlock = await takeTurn(`${repository}.turns`, signal);
  try {
    await checkout(
      repository,
      url,
      commit,
      group.map(({ path }) => path),
      signal,
    );
    for (const task of group) copyOut(repository, task, cachedFolder(cacheFolder, task));
  } finally {
    unlock();
  }
}

async function checkout(
  repository: string,
  url: string,
  commit: string,
  paths: readonly string[],
  signal: AbortSignal,
) {
  const run = (...args: string[]) => git(args, repository, signal);
  if (!existsSync(join(repository, ".git", "config"))) {
    mkdirSync(repository, { recursive: true });
    await run("init", "--quiet");
    await run("remote", "add", "origin", url);
  }
  const has = await run("cat-file", "-e", `${commit}^{commit}`).then(
    () => true,
    () => false,
  );
  if (!has) {
    // Not every server sends parts of a repository, or a commit that is no branch's end.
    await run("fetch", "--quiet", "--depth", "1", "--filter=blob:none", "origin", commit)
      .catch(() => run("fetch", "--quiet", "--depth", "1", "origin", commit))
      .catch(() => run("fetch", "--quiet", "--tags", "origin", "+refs/heads/*:refs/remotes/origin/*"));
  }
  const patterns = paths.map((path) => (path === "." || path === "" ? "/*" : `/${path.replace(/\/+$/, "")}/`));
  await run("sparse-checkout", "set", "--no-cone", ...patterns);
  await run("checkout", "--quiet", "--force", "--detach", commit);
}

/** Appears whole or not at all. */
function copyOut(repository: string, { path, commit, url }: GitTask, target: string): void {
  const parts = path.split("/").filter((part) => part !== "" && part !== ".");
  let at = repository;
  for (const part of parts) {
    at = join(at, part);
    if (!existsSync(at)) fail("RL7207", `The repository ${url} has no folder ${path} at ${commit.slice(0, 12)}.`);
    if (lstatSync(at).isSymbolicLink()) fail("RL7207", `${path} in ${url} is a link, which is not followed.`);
  }
  mkdirSync(dirname(target), { recursive: true });
  const temporary = temporaryName(target);
  try {
    cpSync(at, temporary, {
      recursive: true,
      verbatimSymlinks: true,
      filter: (from) => from !== join(repository, ".git"),
    });
    renameSync(temporary, target);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

const GIT_TIMEOUT_MS = 600_000;

async function git(args: readonly string[], cwd: string | undefined, signal: AbortSignal): Promise<string> {
  const result = await execa("git", args, {
    ...(cwd === undefined ? {} : { cwd }),
    // Nobody is there to be asked for a password, and no configuration of this machine may run programs.
    env: { GIT_TERMINAL_PROMPT: "0", GIT_LFS_SKIP_SMUDGE: "0" },
    reject: false,
    timeout: GIT_TIMEOUT_MS,
    cancelSignal: signal,
    stdin: "ignore",
  });
  signal.throwIfAborted();
  if (result.exitCode === 0) return result.stdout;
  const said = (result.stderr || result.shortMessage || "").trim().split("\n").slice(-3).join(" ");
  return fail("RL7207", `\`git ${args[0]}\` failed: ${said.replace(/\.$/, "")}.`);
}
