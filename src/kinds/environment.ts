/** `environments:` — tasks and a grader. It has no life of its own: runs and evals inline it, so a change to it is a change to them. */
import { existsSync, statSync } from "node:fs";
import { isAbsolute, join, resolve as resolvePath } from "node:path";
import type { Address } from "../address.ts";
import { rowsPath } from "../datasets/dataset.ts";
import { type Diagnostic, diagnostic, fail, RlcliError } from "../diagnostic.ts";
import { type Digest, digestJson } from "../digest.ts";
import { DigestCache } from "../digest-cache.ts";
import { durationMs } from "../duration.ts";
import type { EnvironmentOrder, GraderOrder } from "../environment-order.ts";
import { lackingFields, neededFields, type RowField } from "../environments/row-fields.ts";
import type { DecideContext, IdentifyContext, Identity, Kind, ProjectContext, Resolved } from "../kind.ts";
import type { SpecAttribute, SpecInput, SpecNode } from "../spec.ts";
import { didYouMean } from "../suggest.ts";
import { canonicalJson, isSecret, type JsonObject, type Value, type ValueObject } from "../value.ts";
import { hashedLeaves, numberAt, referenced, referenceTo, ruleOf, secretAt, stringAt } from "./attributes.ts";
import { type DatasetFacts, datasetsFolder } from "./dataset.ts";

/** Tasks in sandboxes; all that is particular to them is loaded when there are some. */
export const isHarbor = (node: SpecNode): boolean => stringAt(node, "type") === "harbor";

export interface EnvironmentFacts {
  /** Of type `harbor`: identity of all tasks. Others have theirs in a dataset. */
  readonly digest?: Digest;
  /** Code of the graders, by path as the spec names it. */
  readonly files: readonly { readonly name: string; readonly digest: Digest }[];
}

/** What is said of the whole environment, not of one grader. */
const WHOLE: ReadonlySet<string> = new Set([
  "type",
  "dataset",
  "question",
  "system",
  "prompt",
  "few_shot",
  "tag",
  "weight",
  "parts",
  "length_penalty",
  "max_turns",
  "tests",
  "timeout",
  "retries",
  "concurrency",
  "api_key",
  "files",
]);

async function resolve(
  node: SpecNode,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<Resolved<EnvironmentFacts>> {
  if (isHarbor(node)) return resolveHarbor(node, project, signal);
  const cache = new DigestCache(join(project.dataFolder, "cache", `digests-${node.name}.json`));
  const inputs: SpecInput[] = [];
  const files: { name: string; digest: Digest }[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const { name, field, isNeeded } of codeOf(node)) {
    const path = isAbsolute(name) ? name : resolvePath(project.folder, name);
    if (!existsSync(path) || !statSync(path).isFile()) {
      if (isNeeded) diagnostics.push(faultAt(node, field, "RL7102", `The grader's file ${name} does not exist.`));
      continue;
    }
    const digest = await cache.digest(path, signal);
    files.push({ name, digest });
    inputs.push({ type: "file", path, digest });
  }
  if (existsSync(project.dataFolder)) cache.save();
  if (diagnostics.length === 0) diagnostics.push(...(await failedTests(node, project, signal)));
  return { facts: { files }, inputs, diagnostics };
}

/** The tasks are read whole: what cannot be loaded is told at plan, and their digest is what runs are known by. */
async function resolveHarbor(
  node: SpecNode,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<Resolved<EnvironmentFacts>> {
  const { harborTasks } = await import("./harbor.ts");
  const { digest, tasks, diagnostics } = await harborTasks(node, project, signal);
  const inputs = tasks.map((task): SpecInput => ({ type: "file", path: task.folder, digest: task.digest }));
  return { facts: { files: [], digest }, inputs, diagnostics };
}

function faultAt(node: SpecNode, field: string, code: "RL7101" | "RL7102" | "RL7105", detail: string): Diagnostic {
  const range = node.rangeOf(field);
  return diagnostic(code, detail, { address: node.address, range, sourceLine: node.lineOf(range) });
}

/** Files of the graders: a module, what `files` lists, and words of a command that are files. */
function codeOf(node: SpecNode): readonly { name: string; field: string; isNeeded: boolean }[] {
  const parts = partsOf(node).map((part, i) => ({ part, field: `parts.${i}` }));
  return [{ part: node.body as JsonObject, field: "" }, ...parts].flatMap(({ part, field }) => {
    const at = (key: string) => (field === "" ? key : `${field}.${key}`);
    const { module, files, command } = part as {
      module?: string;
      files?: readonly string[];
      command?: readonly string[];
    };
    return [
      ...(module === undefined ? [] : [{ name: module, field: at("module"), isNeeded: true }]),
      ...(files ?? []).map((name) => ({ name, field: at("files"), isNeeded: true })),
      ...(command ?? []).map((name) => ({ name, field: at("command"), isNeeded: false })),
    ];
  });
}

const partsOf = (node: SpecNode): readonly JsonObject[] => (node.body.parts as readonly JsonObject[] | undefined) ?? [];

/** Grades the answers whose reward the spec says. */
async function failedTests(
  node: SpecNode,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<readonly Diagnostic[]> {
  const tests = (node.body.tests as readonly JsonObject[] | undefined) ?? [];
  if (tests.length === 0) return [];
  const { openGraders } = await import("../environments/environment.ts");
  const surroundings = { folder: project.folder, env: project.env, cacheFolder: project.cacheFolder };
  let grader: Awaited<ReturnType<typeof openGraders>>;
  try {
    grader = await openGraders(gradersOf(node), surroundings);
  } catch (error) {
    if (!(error instanceof RlcliError)) throw error;
    return error.diagnostics.map(({ detail }) => faultAt(node, "type", "RL7102", detail));
  }
  try {
    const results = tests.map(async ({ completion, reward, ...row }, i) => {
      const request = { prompt: [], completion: String(completion), row, signal };
      const said = await grader.grade(request).then(
        (grade) => (Math.abs(grade.reward - Number(reward)) < REWARD_EPSILON ? undefined : `got ${grade.reward}`),
        (error: unknown) => {
          if (error instanceof RlcliError) return `was not graded: ${error.diagnostics[0]?.detail}`;
          throw error;
        },
      );
      if (said === undefined) return [];
      const detail = `The answer ${JSON.stringify(completion)} should get ${reward} and ${said}.`;
      return [faultAt(node, `tests.${i}`, "RL7105", detail)];
    });
    return (await Promise.all(results)).flat();
  } finally {
    await grader.close();
  }
}

/** Rewards are sums of a few products: nearer than this they are equal. */
const REWARD_EPSILON = 1e-9;

/** Fields that the rows lack, as far as those are here: a misspelt one would otherwise be found out while training. */
function check({ node, upstream }: DecideContext<EnvironmentFacts, undefined>): readonly Diagnostic[] {
  const dataset = referenced(node, "dataset", upstream);
  if (!dataset) return [];
  const { head, columns } = dataset.facts as DatasetFacts;
  if (head) return fieldFaults(node, dataset.node.address, head);
  return columns ? columnFaults(node, dataset.node.address, columns) : [];
}

/** Of rows that are not here yet, but for the names of their fields. */
function columnFaults(node: SpecNode, dataset: Address, columns: readonly string[]): readonly Diagnostic[] {
  return neededBy(node)
    .filter(({ name }) => !columns.includes(name))
    .map(({ name, path }) => {
      const detail = `${lacksField(node, dataset, { name, path }, columns)} Its hub says so; nothing was downloaded.`;
      return faultAt(node, path, "RL7101", detail);
    });
}

const neededBy = (node: SpecNode): readonly RowField[] =>
  neededFields({ question: stringAt(node, "question") as string, graders: gradersOf(node).graders });

function lacksField(
  { address }: SpecNode,
  dataset: Address,
  { name, path }: Pick<RowField, "name" | "path">,
  has: readonly string[],
): string {
  const field = path.split(".").at(-1);
  return `No row of ${dataset} has text in the field \`${name}\`, which \`${field}\` of ${address} names. The rows have ${has.join(", ") || "no fields"}.${didYouMean(name, has)} Correct \`${field}\`, or the rows.`;
}

/** An error where no row has the field; where only some lack it, their attempts are lost, and that is a warning. */
export function fieldFaults(node: SpecNode, dataset: Address, rows: readonly JsonObject[]): readonly Diagnostic[] {
  return lackingFields(neededBy(node), rows).map(({ name, path, count, first }) => {
    const has = Object.keys(rows[first] ?? {});
    const field = path.split(".").at(-1);
    const detail =
      count === rows.length
        ? lacksField(node, dataset, { name, path }, has)
        : `${count} of the first ${rows.length} rows of ${dataset} have no text in the field \`${name}\`, which \`${field}\` of ${node.address} names; row ${first + 1} is the first. Attempts at them are lost.`;
    const range = node.rangeOf(path);
    const severity = count === rows.length ? "error" : "warning";
    return diagnostic("RL7101", detail, { address: node.address, range, sourceLine: node.lineOf(range), severity });
  });
}

/** The hash is of all but the tasks, which whoever inlines it knows as a dataset. */
function identify({ node, facts, upstream }: IdentifyContext<EnvironmentFacts, undefined>): Identity {
  const attributes = withContents(node, facts.files);
  const dataset = referenced(node, "dataset", upstream);
  const { dataset: _, ...leaves } = hashedLeaves(attributes);
  return {
    attributes,
    because: new Map(dataset ? [["dataset", dataset.node.address]] : []),
    hash: digestJson({ kind: "environment", leaves }),
  };
}

/**
 * Files of graders are known by what is in them, wherever they lie: what their names say follows as `….content`. Of a command only the
 * words that are files.
 */
function withContents(node: SpecNode, files: EnvironmentFacts["files"]): Map<string, SpecAttribute> {
  const attributes = new Map<string, SpecAttribute>(node.attributes);
  const digests = new Map(files.map(({ name, digest }): [string, Digest] => [name, digest]));
  const contentOf = (name: Value): Value => (typeof name === "string" && digests.get(name)) || name;
  const contentsOf = (field: string, names: Value): Value => {
    const contents = Array.isArray(names) ? names.map(contentOf) : contentOf(names);
    // Words of a command have their order, files have none.
    return field === "files" && Array.isArray(contents) ? contents.sort() : contents;
  };
  const partContents = (part: Value): Value =>
    Object.fromEntries(
      Object.entries(part as ValueObject).map(([key, value]) => [
        key,
        CODE_FIELDS.has(key) ? contentsOf(key, value) : value,
      ]),
    );
  for (const [path, attribute] of node.attributes) {
    const { value } = attribute;
    const isCode = CODE_FIELDS.has(path);
    if (!isCode && path !== "parts") continue;
    const content = isCode ? contentsOf(path, value) : (value as readonly Value[]).map(partContents);
    if (canonicalJson(content) === canonicalJson(value)) continue;
    attributes.set(path, { ...attribute, change: "none" });
    attributes.set(`${path}.content`, { value: content, change: "replace", isDefault: false });
  }
  return attributes;
}

const CODE_FIELDS: ReadonlySet<string> = new Set(["module", "files", "command"]);

/** The same for tasks in sandboxes. Fails with RL7208 where they are not those that were planned. */
export async function harborEnvironmentOrder(
  node: SpecNode,
  planned: Digest | undefined,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<EnvironmentOrder> {
  const { harborOrder, harborTasks } = await import("./harbor.ts");
  const set = await harborTasks(node, project, signal);
  if (planned !== undefined && set.digest !== planned)
    fail("RL7208", `The tasks of ${node.address} changed after the plan was made. Plan again.`, {
      address: node.address,
    });
  const { harbor } = harborOrder(node, set, project);
  return {
    address: node.address,
    folder: project.folder,
    tasks: { address: node.address, digest: set.digest, path: stringAt(node, "tasks") as string },
    question: "instruction",
    few_shot: [],
    ...(stringAt(node, "tag") === undefined ? {} : { tag: stringAt(node, "tag") as string }),
    graders: [],
    max_turns: harbor.agent.max_turns,
    retries: 0,
    harbor,
  };
}

/** All that a worker needs to open it. `dataset` is the identity of its tasks. */
export function environmentOrder(node: SpecNode, dataset: Digest, project: ProjectContext): EnvironmentOrder {
  const to = referenceTo(node, "dataset");
  if (!to) throw new RangeError(`${node.address} has no dataset`);
  const path = rowsPath(datasetsFolder(project.dataFolder), dataset);
  const text = (key: "system" | "prompt" | "tag") => {
    const value = stringAt(node, key);
    return value === undefined ? {} : { [key]: value };
  };
  return {
    address: node.address,
    folder: project.folder,
    tasks: { address: to, digest: dataset, path },
    question: stringAt(node, "question") as string,
    ...text("system"),
    ...text("prompt"),
    few_shot: (node.body.few_shot as unknown as EnvironmentOrder["few_shot"] | undefined) ?? [],
    ...text("tag"),
    ...gradersOf(node),
    max_turns: numberAt(node, "max_turns") ?? 1,
    retries: numberAt(node, "retries") as number,
  };
}

function gradersOf(node: SpecNode): Pick<EnvironmentOrder, "graders" | "length_penalty"> {
  const timeoutMs = durationMs(stringAt(node, "timeout") as string);
  // A pattern without an answer to compare with is matched for its own sake.
  const isFree = stringAt(node, "mode") === "regex" && node.attributes.get("answer")?.isDefault === true;
  const own = Object.fromEntries(
    Object.entries(node.body).filter(([key]) => !WHOLE.has(key) && !(isFree && key === "answer")),
  ) as unknown as JsonObject;
  const type = stringAt(node, "type") as string;
  const key = secretAt(node, "api_key");
  const concurrency = numberAt(node, "concurrency");
  const first: GraderOrder = {
    type,
    name: type,
    weight: numberAt(node, "weight") as number,
    options: own,
    timeoutMs,
    ...(concurrency === undefined ? {} : { concurrency }),
    ...(key === undefined ? {} : { apiKey: key }),
  };
  const penalty = node.body.length_penalty as unknown as EnvironmentOrder["length_penalty"];
  return {
    graders: [first, ...partsOf(node).map((part) => partOrder(part, timeoutMs))],
    ...(penalty ? { length_penalty: penalty } : {}),
  };
}

function partOrder(part: JsonObject, timeoutMs: number): GraderOrder {
  const { type, name, weight, timeout, concurrency, api_key, ...options } = part as Record<string, Value>;
  return {
    type: type as string,
    name: (name as string | undefined) ?? (type as string),
    weight: (weight as number | undefined) ?? 1,
    options: { ...(options.mode === "regex" ? {} : { answer: "answer" }), ...options } as JsonObject,
    timeoutMs: typeof timeout === "string" ? durationMs(timeout) : timeoutMs,
    ...(typeof concurrency === "number" ? { concurrency } : {}),
    ...(isSecret(api_key) ? { apiKey: api_key.$secret } : {}),
  };
}

export const environmentKind: Kind<EnvironmentFacts, undefined> = {
  name: "environment",
  isInline: true,
  removal: "forget",
  ruleOf: (path) => ruleOf("environment", path),
  lockedNames: (node) => (isHarbor(node) ? [`harbor:${stringAt(node, "tasks")}`] : []),
  resolve,
  read: async () => ({ status: "present", seen: undefined, drift: [] }),
  identify,
  check,
  act: async () => ({ status: "done", record: "removed" }),
};
