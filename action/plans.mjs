// Reviewed plans travel in the repository itself, one ref for each project and tree: refs/rlcli/plans/<tree>/<project>. GitHub checks a pull
// request out as it would be merged, so if the branch does not move, the merge has the same tree, and finds the plan that was reviewed. If
// it moves, there is no plan for the new tree, and nothing is applied. `rlcli apply` then checks records and inputs once more.
import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { Failure } from "./run.mjs";

const FILE = "plan.bin";
const AUTHOR = {
  GIT_AUTHOR_NAME: "rlcli",
  GIT_AUTHOR_EMAIL: "rlcli@localhost",
  GIT_COMMITTER_NAME: "rlcli",
  GIT_COMMITTER_EMAIL: "rlcli@localhost",
};

function git({ folder }, args, input) {
  const env = { ...process.env, ...AUTHOR };
  const { status, stdout, stderr } = spawnSync("git", args, { cwd: folder, input, env, maxBuffer: 1 << 28 });
  return { isDone: status === 0, out: stdout ?? Buffer.alloc(0), words: stderr?.toString().trim() ?? "" };
}

function must(settings, args, input) {
  const { isDone, out, words } = git(settings, args, input);
  if (!isDone) throw new Failure(`git ${args[0]} failed: ${words}`);
  return out.toString().trim();
}

export const treeOf = (settings) => must(settings, ["rev-parse", "HEAD^{tree}"]);

function refOf(settings) {
  const project = createHash("sha256").update(settings.name).digest("hex").slice(0, 12);
  return `refs/rlcli/plans/${treeOf(settings)}/${project}`;
}

/** Pushes a plan; returns what is to be said of it where that is not possible, as for pull requests from forks. */
export function keepPlan(settings, bytes) {
  const blob = must(settings, ["hash-object", "-w", "--stdin"], bytes);
  const tree = must(settings, ["mktree"], `100644 blob ${blob}\t${FILE}\n`);
  const commit = must(settings, ["commit-tree", tree, "-m", `Plan of ${settings.name}`]);
  const pushed = git(settings, ["push", "--force", "origin", `${commit}:${refOf(settings)}`]);
  if (pushed.isDone) return "";
  console.log(`::warning title=rlcli::The plan could not be kept: ${pushed.words.replaceAll("\n", " ")}`);
  return "\n_This plan could not be kept (it needs `contents: write`), so a merge will not apply it._\n";
}

/** The plan that was reviewed for these files; undefined where there is none. */
export function keptPlan(settings) {
  const ref = refOf(settings);
  const fetched = git(settings, ["fetch", "--depth", "1", "origin", `+${ref}:${ref}`]);
  if (!fetched.isDone) return undefined;
  const { isDone, out } = git(settings, ["cat-file", "blob", `${ref}:${FILE}`]);
  return isDone ? out : undefined;
}

/** Days after which a plan that nobody applied is of no use. */
const OLDEST_DAYS = 90;

/** Removes plans of pull requests that were not merged. What cannot be removed stays for the next time. */
export function removeOldPlans(settings, now = Date.now()) {
  const namespace = "refs/rlcli/plans";
  if (!git(settings, ["fetch", "--depth", "1", "origin", `+${namespace}/*:${namespace}/*`]).isDone) return;
  const format = "--format=%(committerdate:unix) %(refname)";
  const lines = must(settings, ["for-each-ref", format, namespace])
    .split("\n")
    .filter((line) => line !== "");
  for (const line of lines) {
    const [seconds, ref] = line.split(" ");
    if (now / 1000 - Number(seconds) < OLDEST_DAYS * 86_400) continue;
    git(settings, ["push", "origin", `:${ref}`]);
    git(settings, ["update-ref", "-d", ref]);
  }
}

/** Once applied, it is no use any more. */
export function removePlan(settings) {
  git(settings, ["push", "origin", `:${refOf(settings)}`]);
}
