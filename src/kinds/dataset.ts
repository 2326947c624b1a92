/** `datasets:` — rows to train on. Its identity is the digest of its sources and of how they are read, known before any import. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { nameOf } from "../address.ts";
import {
  type DatasetRequest,
  datasetIdentity,
  importDataset,
  MAYBE_TASKS,
  manifestPath,
  rowsPath,
} from "../datasets/dataset.ts";
import { alpacaFormat } from "../datasets/formats/alpaca.ts";
import { LIST_KEYS, messagesFormat } from "../datasets/formats/messages.ts";
import { tasksFormat } from "../datasets/formats/tasks.ts";
import { firstRows, firstTasks, HEAD_ROWS } from "../datasets/head.ts";
import { type ImportFields, importOptions, optionFault } from "../datasets/options.ts";
import { detectFormat } from "../datasets/registry.ts";
import { type Diagnostic, diagnostic, fail, RlcliError } from "../diagnostic.ts";
import type { Digest } from "../digest.ts";
import { DigestCache } from "../digest-cache.ts";
import { isFileSystemError } from "../files.ts";
import type { ActContext, Identity, Kind, Outcome, ProjectContext, Resolved } from "../kind.ts";
import type { SpecAttribute, SpecNode } from "../spec.ts";
import { listNames } from "../suggest.ts";
import type { JsonObject, Value } from "../value.ts";
import { numberAt, ruleOf, stringAt } from "./attributes.ts";
import { modelFolder } from "./model.ts";
import { type MovingSources, movingNames, movingSources } from "./moving.ts";
import { SMOKE_ROWS } from "./smoke.ts";

export interface DatasetFacts {
  /** Identity: contents of the sources in order, and the import's options. */
  readonly digest: Digest;
  readonly sources: readonly { readonly path: string; readonly digest: Digest; readonly bytes: number }[];
  /** Of tasks: the first few, where they are here already. */
  readonly head?: readonly JsonObject[];
  /** Fields of its rows, where their hub tells. */
  readonly columns?: readonly string[];
}

/** `.rlcli/datasets/`, where imports land by identity. */
export function datasetsFolder(dataFolder: string): string {
  return join(dataFolder, "datasets");
}

/**
 * How a block's sources are read: `source: file` is rows of our own form or tasks, without filters. Fails with RL6015 or RL5002.
 */
async function requestOf(node: SpecNode, project: ProjectContext, moving?: MovingSources): Promise<DatasetRequest> {
  const baseFolder = project.folder;
  const source = stringAt(node, "source");
  const hasTasks = stringAt(node, "rows") === "tasks";
  const pinned = moving ? { pinned: moving.byName } : {};
  if (source !== undefined) {
    const format = hasTasks ? tasksFormat.name : "messages";
    const options = { min_messages: 1, ...(project.isSmoke ? { limit: SMOKE_ROWS } : {}) };
    return { format, from: [source], baseFolder, options, isVerbatim: true, ...pinned };
  }
  if (hasTasks) fail("RL6015", TASKS_OF_IMPORT, { address: node.address, range: node.rangeOf("import.from") });
  const written = fieldsOf(node);
  const fields = project.isSmoke ? { ...written, limit: Math.min(written.limit ?? SMOKE_ROWS, SMOKE_ROWS) } : written;
  const fault = optionFault(fields, (field) => `\`${field}\``);
  if (fault) fail("RL6015", fault, { address: node.address, range: node.rangeOf("import.from") });
  const tokenizerFolder = fields.model === undefined ? undefined : await modelFolder(fields.model, project);
  const maxErrors = node.attributes.get("import.strict")?.value === true ? 0 : numberAt(node, "import.max_errors");
  return {
    format: stringAt(node, "import.format") ?? "auto",
    from: listAt(node, "import.from") ?? [],
    baseFolder,
    options: importOptions(fields, tokenizerFolder === undefined ? undefined : await tokenizerDigest(tokenizerFolder)),
    ...(tokenizerFolder === undefined ? {} : { tokenizerFolder }),
    ...(maxErrors === undefined ? {} : { maxErrors }),
    ...pinned,
  };
}

const TASKS_OF_IMPORT =
  "An import makes conversations to train on, and this dataset is to hold tasks (`rows: tasks`, or an environment uses it). Give the tasks as `source:`, a file of JSONL, CSV or Parquet, or `hf://…`.";

/** The same, with the files of other places here. `onProgress` is told of downloads. */
export async function readyRequest(
  node: SpecNode,
  project: ProjectContext,
  signal: AbortSignal,
  onProgress: (text: string) => void,
): Promise<DatasetRequest> {
  const moving = await movingSources(node, project, signal);
  await moving?.download(onProgress);
  return requestOf(node, project, moving);
}

/** Tokenizers are loaded late: most plans need none. */
async function tokenizerDigest(folder: string): Promise<Digest> {
  return (await import("../tokens/load.ts")).textDigest(folder);
}

function fieldsOf(node: SpecNode): ImportFields {
  const number = (name: string) => numberAt(node, `import.${name}`);
  const text = (name: string) => stringAt(node, `import.${name}`);
  const flag = (name: string) => node.attributes.get(`import.${name}`)?.value === true || undefined;
  const list = (name: string) => listAt(node, `import.${name}`);
  return {
    min_messages: number("min_messages"),
    limit: number("limit"),
    keep_tools: flag("keep_tools"),
    keep_thinking: flag("keep_thinking"),
    role_prefix: list("role_prefix"),
    choices: text("choices"),
    where: list("where"),
    min_score: number("min_score"),
    weight_by: text("weight_by"),
    max_tokens: number("max_tokens"),
    model: text("model"),
    redact: flag("redact"),
    redact_names: list("redact_names"),
    redact_patterns: list("redact_patterns"),
    dedupe: text("dedupe"),
    near_threshold: number("near_threshold"),
    sample: number("sample"),
    seed: number("seed"),
    split: text("split"),
    test_share: number("test_share"),
    max_line_bytes: number("max_line_bytes"),
  };
}

const listAt = (node: SpecNode, path: string): readonly string[] | undefined =>
  node.attributes.get(path)?.value as readonly string[] | undefined;

async function resolve(node: SpecNode, project: ProjectContext, signal: AbortSignal): Promise<Resolved<DatasetFacts>> {
  const cache = new DigestCache(join(project.dataFolder, "cache", `digests-${node.name}.json`));
  const moving = await movingSources(node, project, signal);
  const request = await requestOf(node, project, moving);
  const identity = await datasetIdentity(request, {
    signal,
    digestFile: (path) => cache.digest(path, signal),
    range: node.rangeOf(node.attributes.has("source") ? "source" : "import.from"),
    address: node.address,
  });
  if (existsSync(project.dataFolder)) cache.save();
  const isImported = existsSync(manifestPath(datasetsFolder(project.dataFolder), identity.digest));
  if (moving && !isImported) await moving.requireReachable();
  const isOfTasks = stringAt(node, "rows") === "tasks";
  const isDoubtful = request.isVerbatim === true && !isOfTasks && !isImported;
  const head = isOfTasks || isDoubtful ? await headOf(request, identity.digest, project) : undefined;
  const { columns } = moving ?? {};
  return {
    facts: { ...identity, ...(isOfTasks && head ? { head } : {}), ...(columns ? { columns } : {}) },
    inputs: identity.sources.map(({ name, path, digest }) => ({
      type: "file",
      path: moving?.isMoving(path) ? name : path,
      digest,
    })),
    diagnostics: [...(moving?.diagnostics ?? []), ...(isDoubtful ? noConversations(node, head, columns) : [])],
  };
}

/** Rows that are none of ours, told before they are downloaded or imported. Only a warning where there are more rows than were looked at. */
function noConversations(
  node: SpecNode,
  head: readonly JsonObject[] | undefined,
  columns: readonly string[] | undefined,
): readonly Diagnostic[] {
  const fields = head ? Object.keys(head[0] ?? {}) : (columns ?? []);
  const isFound = head ? head.some((row) => messagesFormat.detects(row)) : columns?.some((name) => LIST_KEYS.has(name));
  if (fields.length === 0 || isFound) return [];
  const isPart = head !== undefined && head.length >= HEAD_ROWS;
  const which = head ? `None of the ${isPart ? "first " : ""}${head.length} rows` : "No row";
  const detail = `${which} of ${node.address} is a conversation: they have ${listNames(fields)}. A row should look like ${messagesFormat.expected}.${logsHint(node, head)}`;
  const range = node.rangeOf("source");
  const place = { address: node.address, range, sourceLine: node.lineOf(range) };
  return [diagnostic("RL6004", detail, { ...place, severity: isPart ? "warning" : "error" })];
}

/** What the rows may be instead: logs that an import can read, or tasks. */
function logsHint(node: SpecNode, head: readonly JsonObject[] | undefined): string {
  const format = detectFormat(head?.[0]);
  if (format === undefined || format.name === messagesFormat.name) return MAYBE_TASKS;
  const source = stringAt(node, "source") ?? "";
  // A glob that begins with a star would be an alias in YAML.
  const from = /^[\w./-]+$/.test(source) ? source : JSON.stringify(source);
  const hint = ` In the form \`${format.name}\` they can be imported: \`import: { format: ${format.name}, from: ${from} }\` in the place of \`source\`.`;
  // A question and its answer are either.
  return format.name === alpacaFormat.name ? `${hint}${MAYBE_TASKS}` : hint;
}

/** From what was imported, else from files of this machine; what is wrong with those is the import's to say. */
async function headOf(
  request: DatasetRequest,
  digest: Digest,
  { dataFolder }: ProjectContext,
): Promise<readonly JsonObject[] | undefined> {
  const imported = rowsPath(datasetsFolder(dataFolder), digest);
  try {
    if (existsSync(imported)) return await firstRows(imported);
    return await firstTasks(request);
  } catch (error) {
    if (error instanceof RlcliError || isFileSystemError(error)) return undefined;
    throw error;
  }
}

function identify({ node, facts }: { node: SpecNode; facts: DatasetFacts }): Identity {
  const attributes = new Map<string, SpecAttribute>();
  for (const [path, attribute] of node.attributes) attributes.set(path, { ...attribute, change: "update" });
  attributes.set("content", { value: facts.digest as Value, change: "update", isDefault: false });
  return { attributes, because: new Map(), hash: facts.digest };
}

async function act(context: ActContext<DatasetFacts, undefined>): Promise<Outcome> {
  const { node, project, change, facts } = context;
  if (change.action === "forget" || !node || !facts) return { status: "done", record: "removed" };
  const request = await readyRequest(node, project, context.stop, (text) => context.phase(text));
  context.phase("importing");
  const manifest = await importDataset(request, {
    outFolder: datasetsFolder(project.dataFolder),
    signal: context.stop,
    expect: facts.digest,
    address: node.address,
  });
  const dropped = Object.values(manifest.dropped).reduce((sum, count) => sum + count, 0);
  return {
    status: "done",
    record: { status: "ready", results: { rows: manifest.rows, dropped } },
    summary: `${manifest.rows} rows${dropped > 0 ? `, ${dropped} dropped` : ""}`,
  };
}

export const datasetKind: Kind<DatasetFacts, undefined> = {
  name: "dataset",
  removal: "forget",
  ruleOf: (path) => ruleOf("dataset", path),
  lockedNames: movingNames,
  resolve,
  async read({ project, record, address }) {
    const isThere = record === undefined || existsSync(manifestPath(datasetsFolder(project.dataFolder), record.hash));
    const drift = isThere
      ? []
      : [{ message: `the imported rows of ${nameOf(address)} are gone from .rlcli/datasets`, mend: "update" as const }];
    return { status: "present", seen: undefined, drift };
  },
  identify,
  act,
};
