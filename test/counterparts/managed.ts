/** Projects whose SkyRL server rlcli itself installs, starts and watches, from the package that `setup-skyrl` has found. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { rows, TestProject } from "../e2e/project.ts";
import { cache } from "./environment.ts";

const environment = join(cache, "skyrl");
const packageFile = join(environment, "package");

/** Slow, so only where it is asked for. */
export const canManage =
  process.env.RLCLI_TEST_ALL === "1" && existsSync(join(environment, "complete")) && existsSync(packageFile);

/** A jax server compiles for half a minute before its first step. */
export const SLOW = { timeoutMs: 600_000 };

const GRADER = `export function grade({ completion }) {
  return { reward: [...completion].reduce((sum, char) => sum + (char.codePointAt(0) % 97), 0) / 400 };
}
`;

const TASKS = Array.from(
  { length: 8 },
  (_, i) => `${JSON.stringify({ question: `${i}+1=`, answer: `${i + 1}` })}\n`,
).join("");

/**
 * A project with the tiny model in `tiny`, conversations in `numbers.jsonl`, tasks in `sums.jsonl` with their grader, and a data folder of its
 * own. Its servers are stopped when the test is over.
 */
export function newManagedProject(spec: string): TestProject {
  const project = new TestProject({
    "rlcli.yaml": spec,
    "numbers.jsonl": rows(),
    "sums.jsonl": TASKS,
    "grade.mjs": GRADER,
  });
  cpSync(new URL("../fixtures/tiny-qwen3", import.meta.url), join(project.folder, "tiny"), { recursive: true });
  // The python that made the counterpart's environment is the one whose packages are known to be there.
  const python = join(environment, "bin/python");
  const version = execFileSync(python, ["-c", "import sys; print('%d.%d' % sys.version_info[:2])"], {
    encoding: "utf8",
  }).trim();
  const links = process.env.PIP_FIND_LINKS ? ["--find-links", process.env.PIP_FIND_LINKS] : [];
  const data = mkdtempSync(join(tmpdir(), "rlcli-data-"));
  Object.assign(project.env, {
    RLCLI_UV: join(environment, "bin/uv"),
    RLCLI_DATA: data,
    RLCLI_SKYRL_PACKAGE: readFileSync(packageFile, "utf8").trim(),
    RLCLI_SKYRL_PYTHON: version,
    RLCLI_SKYRL_ARGUMENTS: [...links, "torch==2.13.0", "tinker==0.24.1"].join(" "),
  });
  onTestFinished(async () => {
    project.run(["serve", "stop", "--force"]);
    await project.close();
    rmSync(data, { recursive: true, force: true });
  });
  return project;
}

/** Processes of the project's server `box`, by the mark that they inherit, whose command line names a module. */
export function processesOf(project: TestProject, module: string): readonly number[] {
  const mark = `RLCLI_SERVER=${join(project.folder, ".rlcli/servers/box")}\0`;
  return pidsWhere((words, environ) => environ.includes(mark) && words.includes(module) && !words.startsWith("uv"));
}

/** Processes of this machine by their command line and environment. */
export function pidsWhere(is: (words: string, environ: string) => boolean): readonly number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        return is(readFileSync(`/proc/${name}/cmdline`, "utf8"), readFileSync(`/proc/${name}/environ`, "utf8"));
      } catch {
        return false;
      }
    })
    .map(Number);
}

/** Kills the Python process of a module, not the `uv run` that it was started under. */
export function killModule(project: TestProject, module: string): void {
  const [pid] = processesOf(project, module).filter(
    (pid) => !readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("uv\0run"),
  );
  process.kill(pid!, "SIGKILL");
}
