/** From the text of a task.toml to its typed form. Every field of the format is honoured, refused or warned about. */
import { parse, TomlError } from "smol-toml";
import { type Diagnostic, diagnostic } from "../../diagnostic.ts";
import type { Artifact, PhaseConfig, StepConfig, TaskConfig, VerifierConfig } from "./config.ts";
import { Fields, isTable, TomlReport, type TomlTable } from "./fields.ts";
import { placeAt } from "./places.ts";
import { networkOf, readEnvironment, readHealthcheck } from "./read-environment.ts";

export interface ReadConfig {
  /** Absent where the text is no TOML. */
  readonly config?: TaskConfig;
  readonly diagnostics: readonly Diagnostic[];
}

const VERIFIER_TIMEOUT_SEC = 600;
const COLLECT_TIMEOUT_SEC = 60;

/** `file` is how diagnostics call it; `fallbackName` names a task without `[task]`. */
export function readTaskConfig(text: string, file: string, fallbackName: string): ReadConfig {
  let table: TomlTable;
  try {
    table = parse(text) as TomlTable;
  } catch (error) {
    if (!(error instanceof TomlError)) throw error;
    const words = error.message.split("\n")[0]?.replace(/^Invalid TOML document: /, "") ?? "";
    const place = placeAt(text, file, error.line, error.column);
    return { diagnostics: [diagnostic("RL7202", `${file} is no TOML: ${words.replace(/\.?$/, ".")}`, place)] };
  }
  const report = new TomlReport(text, file);
  const config = readRoot(new Fields(table, [], report), fallbackName);
  return { config, diagnostics: report.diagnostics };
}

function readRoot(root: Fields, fallbackName: string): TaskConfig {
  root.string(root.has("schema_version") ? "schema_version" : "version");
  for (const known of ["version", "source", "multi_step_reward_mode"]) root.raw(known);
  const task = readTaskTable(root.table("task"), fallbackName);
  const agent = readPhase(root.table("agent"));
  const verifier = readVerifier(root.table("verifier"));
  const solution = root.table("solution");
  const config: TaskConfig = {
    ...task,
    metadata: isTable(root.raw("metadata")) ? (root.raw("metadata") as TomlTable) : {},
    artifacts: readArtifacts(root, "artifacts"),
    strategy: root.oneOf("multi_step_reward_strategy", ["mean", "final"] as const) ?? "mean",
    agent,
    verifier,
    environment: readEnvironment(root.table("environment")),
    solution: { env: solution.texts("env") },
    steps: root.tables("steps").map((step) => readStep(step, agent, verifier)),
  };
  for (const [index, { verifier: own }] of config.steps.slice(0, -1).entries())
    if (own.isSeparate) root.report.add("RL7203", [...root.at("steps"), index], SEPARATE_STEP);
  solution.done();
  root.done();
  checkStepNames(config.steps, root);
  return config;
}

const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]*\/[A-Za-z0-9][A-Za-z0-9._-]*$/;

function readTaskTable(task: Fields, fallback: string): { name: string; description: string } {
  const name = task.string("name");
  for (const known of ["version", "keywords", "authors"]) task.raw(known);
  if (name !== undefined && (!NAME.test(name) || name.includes("..")))
    task.fault("name", `\`${name}\` is no name of a task: it has the form \`org/name\`.`);
  const description = task.string("description") ?? "";
  task.done();
  return { name: name ?? fallback, description };
}

function readPhase(fields: Fields): PhaseConfig {
  const phase = phaseOf(fields);
  fields.done();
  return phase;
}

function phaseOf(fields: Fields): PhaseConfig {
  const timeoutSec = fields.number("timeout_sec");
  const user = fields.user("user");
  const network = networkOf(fields);
  return {
    ...(timeoutSec === undefined ? {} : { timeoutSec }),
    ...(user === undefined ? {} : { user }),
    ...(network === undefined ? {} : { network }),
  };
}

/** A step's own values win over the task's; its time limit does not fall back to the task's, as in Harbor. */
function readVerifier(fields: Fields, task?: VerifierConfig): VerifierConfig {
  const own = phaseOf(fields);
  const mode = fields.oneOf("environment_mode", ["shared", "separate"] as const);
  const environment = fields.has("environment") ? readEnvironment(fields.table("environment")) : undefined;
  if (mode === "shared" && environment)
    fields.fault("environment_mode", "`shared` tests run in the agent's container and have no `environment`.");
  const resolved = mode ?? (environment ? "separate" : undefined);
  const collect = fields.tables("collect").map((hook) => {
    mainOnly(hook);
    const user = hook.user("user");
    const command = hook.string("command") ?? hook.fault("command", "A hook needs its `command`.") ?? "";
    const read = { command, timeoutSec: hook.number("timeout_sec") ?? COLLECT_TIMEOUT_SEC };
    hook.done();
    return { ...read, ...(user === undefined ? {} : { user }) };
  });
  const verifier = {
    ...(task?.user === undefined ? {} : { user: task.user }),
    ...(task?.network === undefined ? {} : { network: task.network }),
    ...own,
    timeoutSec: own.timeoutSec ?? VERIFIER_TIMEOUT_SEC,
    env: { ...task?.env, ...fields.texts("env") },
    collect: [...(task?.collect ?? []), ...collect],
    isSeparate: resolved === undefined ? (task?.isSeparate ?? false) : resolved === "separate",
    ...(environment ? { environment } : {}),
  };
  fields.done();
  return verifier;
}

/** The agent's container would have to wait for another one, and whoever holds one while waiting can lock all out. */
const SEPARATE_STEP =
  "Tests in a container of their own (`separate`) are supported for the last step only: the others run in the agent's.";

function mainOnly(fields: Fields): void {
  const service = fields.string("service");
  if (service !== undefined && service !== "main")
    fields.refuse("service", `There is only the service \`main\`: tasks made of several containers are not supported.`);
}

function readStep(fields: Fields, agent: PhaseConfig, verifier: VerifierConfig): StepConfig {
  const name = fields.string("name") ?? fields.fault("name", "A step needs a `name`.") ?? "";
  const minReward = readMinReward(fields);
  const health = fields.has("healthcheck") ? readHealthcheck(fields.table("healthcheck")) : undefined;
  const step: StepConfig = {
    name,
    agent: { ...agent, ...readPhase(fields.table("agent")) },
    verifier: readVerifier(fields.table("verifier"), verifier),
    ...(minReward === undefined ? {} : { minReward }),
    ...(health === undefined ? {} : { healthcheck: health }),
    artifacts: readArtifacts(fields, "artifacts"),
  };
  fields.done();
  return step;
}

function readMinReward(fields: Fields): StepConfig["minReward"] {
  const value = fields.raw("min_reward");
  if (!isTable(value)) return fields.number("min_reward", { isPositive: false });
  const keys: Record<string, number> = {};
  const table = fields.table("min_reward");
  for (const key of Object.keys(value)) keys[key] = table.number(key, { isPositive: false }) ?? 0;
  return keys;
}

function readArtifacts(fields: Fields, key: string): readonly Artifact[] {
  const list = fields.raw(key) ?? [];
  if (!Array.isArray(list)) {
    fields.fault(key, `\`${key}\` must be a list.`);
    return [];
  }
  return list.flatMap((entry, index): Artifact[] => {
    if (typeof entry === "string") return checkArtifact({ source: entry, exclude: [] }, fields, key);
    if (!isTable(entry)) return fields.fault(key, "An artifact is a path or a table with `source`.") ?? [];
    const own = new Fields(entry, [...fields.at(key), index], fields.report);
    mainOnly(own);
    const destination = own.string("destination");
    const source = own.string("source") ?? own.fault("source", "An artifact needs its `source`.") ?? "/";
    const exclude = own.strings("exclude") ?? [];
    own.done();
    return checkArtifact({ source, exclude, ...(destination === undefined ? {} : { destination }) }, fields, key);
  });
}

function checkArtifact(artifact: Artifact, fields: Fields, key: string): Artifact[] {
  const { source, destination } = artifact;
  const leaves = (path: string) => path.split("/").includes("..");
  const isBad = destination !== undefined && (leaves(destination) || /^\/|\\|^manifest\.json$/.test(destination));
  if (leaves(source)) return fields.fault(key, `The artifact \`${source}\` must not contain \`..\`.`) ?? [];
  if (isBad) return fields.fault(key, `\`${destination}\` is no place for an artifact.`) ?? [];
  return [artifact];
}

const PORTABLE = /^(?!(?:con|prn|aux|nul|com\d|lpt\d)(?:\.|$))[^<>:"/\\|?*]{1,255}(?<![. ])$/i;

function checkStepNames(steps: readonly StepConfig[], root: Fields): void {
  const seen = new Set<string>();
  for (const { name } of steps) {
    const key = name.normalize("NFC").toLowerCase();
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for.
    const isPortable = PORTABLE.test(name) && !/[\u0000-\u001f]/.test(name) && name !== "." && name !== "..";
    if (!isPortable) root.fault("steps", `\`${name}\` is no name of a step: it must be that of a folder.`);
    else if (seen.has(key)) root.fault("steps", `Two steps are called \`${name}\`.`);
    seen.add(key);
  }
}
