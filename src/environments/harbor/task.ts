/** A task on disk: its configuration, what the agent is told, and where its files lie. */
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, join, relative, sep } from "node:path";
import { type Diagnostic, diagnostic, hasErrors, messageOf } from "../../diagnostic.ts";
import type { Digest } from "../../digest.ts";
import type { TaskConfig } from "./config.ts";
import { taskDigest } from "./digest.ts";
import { readTaskConfig } from "./read-config.ts";
import { verifierPlace } from "./separate.ts";

export interface HarborTask {
  /** Absolute. */
  readonly folder: string;
  readonly config: TaskConfig;
  readonly digest: Digest;
  /** One for a plain task. */
  readonly steps: readonly TaskStep[];
}

export interface TaskStep {
  /** Absent for a plain task. */
  readonly name?: string;
  /** Without canary lines. */
  readonly instruction: string;
  /** Folders that are copied to `/tests`, later ones over earlier; absolute. */
  readonly tests: readonly string[];
  /** Folder with `solve.sh`. */
  readonly solution?: string;
  /** Folder whose files are put into the working directory first. */
  readonly workdir?: string;
}

export interface LoadedTask {
  /** Absent where there are errors. */
  readonly task?: HarborTask;
  readonly diagnostics: readonly Diagnostic[];
}

/** `shown` is how diagnostics call the folder. */
export function loadTask(folder: string, shown = folder): LoadedTask {
  const file = join(folder, "task.toml");
  const faults: Diagnostic[] = [];
  const fault = (detail: string) => faults.push(diagnostic("RL7201", detail));
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    return {
      diagnostics: [diagnostic("RL7201", `${shown} is no task: its task.toml cannot be read: ${messageOf(error)}.`)],
    };
  }
  const { config, diagnostics } = readTaskConfig(text, join(shown, "task.toml"), basename(folder));
  if (!config) return { diagnostics };
  checkParts(folder, shown, config, fault);
  faults.push(...refusals(folder, shown, config));
  checkLinks(folder, shown, fault);
  const all = [...diagnostics, ...faults];
  if (hasErrors(all)) return { diagnostics: all };
  return { task: { folder, config, digest: taskDigest(folder), steps: stepsOf(folder, config) }, diagnostics: all };
}

type Fault = (detail: string) => void;

function checkParts(folder: string, shown: string, config: TaskConfig, fault: Fault): void {
  const has = (path: string) => existsSync(join(folder, path));
  const need = (path: string, why: string) => {
    if (!has(path)) fault(`${shown} has no ${path}${why}.`);
  };
  if (config.environment.image === undefined)
    need("environment/Dockerfile", " and its task.toml names no docker_image");
  const isBundled = (index: number) => verifierPlace(folder, config, index)?.isBundled ?? false;
  if (config.steps.length === 0) {
    need("instruction.md", ", which tells the agent what to do");
    if (!isBundled(0)) need("tests/test.sh", ", which judges what the agent did");
  }
  for (const [index, { name }] of config.steps.entries()) {
    need(`steps/${name}/instruction.md`, ", which tells the agent what to do");
    if (!isBundled(index) && !has("tests/test.sh"))
      need(`steps/${name}/tests/test.sh`, " and there is no tests/test.sh");
  }
}

const COMPOSE = ["docker-compose.yaml", "docker-compose.yml", "compose.yaml", "compose.yml"];

function refusals(folder: string, shown: string, config: TaskConfig): readonly Diagnostic[] {
  const isSeparate = [config, ...config.steps].some(({ verifier }) => verifier.isSeparate);
  const contexts = [
    "environment",
    ...(isSeparate ? ["tests", ...config.steps.map(({ name }) => `steps/${name}/tests`)] : []),
  ];
  const composes = contexts.flatMap((context) => COMPOSE.map((name) => `${context}/${name}`));
  const compose = composes.find((path) => existsSync(join(folder, path)));
  const seeds = ["trajectory.json", ...config.steps.map(({ name }) => `steps/${name}/trajectory.json`)];
  const seed = seeds.find((path) => existsSync(join(folder, path)));
  return [
    ...(compose === undefined
      ? []
      : [diagnostic("RL7203", `${shown} is made of several containers (${compose}), which is not supported.`)]),
    ...(seed === undefined
      ? []
      : [
          diagnostic(
            "RL7203",
            `${shown} begins with a conversation of somebody else (${seed}), which is not supported.`,
          ),
        ]),
  ];
}

/** What is copied into containers must lie in the task, also through links. */
function checkLinks(folder: string, shown: string, fault: Fault): void {
  const root = realpathSync(folder);
  const isInside = (path: string) => path === root || path.startsWith(root + sep);
  const visit = (path: string): void => {
    let real: string;
    try {
      real = realpathSync(path);
    } catch (error) {
      fault(`${shown}: the link ${relative(folder, path)} leads nowhere: ${messageOf(error)}.`);
      return;
    }
    if (!isInside(real)) fault(`${shown}: ${relative(folder, path)} leads out of the task, to ${real}.`);
    else if (real === path.replace(folder, root) && statSync(real).isDirectory())
      for (const name of readdirSync(path)) visit(join(path, name));
  };
  for (const part of ["tests", "solution", "steps"]) if (existsSync(join(folder, part))) visit(join(folder, part));
}

function stepsOf(folder: string, { steps }: TaskConfig): readonly TaskStep[] {
  const existing = (...paths: readonly string[]) => paths.map((path) => join(folder, path)).filter(existsSync);
  const one = (paths: readonly string[], key: "solution" | "workdir") => {
    const [path] = existing(...paths);
    return path === undefined ? {} : { [key]: path };
  };
  const instruction = (path: string) => withoutCanary(readFileSync(join(folder, path), "utf8"));
  if (steps.length === 0)
    return [{ instruction: instruction("instruction.md"), tests: existing("tests"), ...one(["solution"], "solution") }];
  return steps.map(({ name }) => ({
    name,
    instruction: instruction(`steps/${name}/instruction.md`),
    tests: existing("tests", `steps/${name}/tests`),
    ...one([`steps/${name}/solution`, "solution"], "solution"),
    ...one([`steps/${name}/workdir`], "workdir"),
  }));
}

const CANARY = /^(?:<!--.*canary.*-->|#.*canary.*)$/i;

/** Marks against training on test data, at the top only, and the blank lines after them. */
export function withoutCanary(text: string): string {
  const lines = text.replace(/^\uFEFF/, "").split("\n");
  let at = 0;
  while (CANARY.test((lines[at] ?? "").trim())) at += 1;
  if (at > 0) while (at < lines.length && lines[at]?.trim() === "") at += 1;
  return lines.slice(at).join("\n");
}
