/** What a run is: its leaves, with the things it refers to in the place of their names, and its generation. */
import type { Address } from "../../address.ts";
import type { Digest } from "../../digest.ts";
import type { IdentifyContext, Identity, Upstream } from "../../kind.ts";
import { isBuiltinModel } from "../../servers/builtin.ts";
import type { SpecAttribute, SpecNode } from "../../spec.ts";
import type { Json, Value } from "../../value.ts";
import { referenced, stringAt } from "../attributes.ts";
import type { DatasetFacts } from "../dataset.ts";
import type { ServerFacts } from "../server.ts";
import type { RunSeen } from "./observe.ts";
import { generationOf, hasExplicitHorizon, NAMES, parentOf, SEMANTICS, scheduleOf } from "./settings.ts";

/** Small facts about a run that its record keeps in `results`. */
export interface RunResults {
  readonly step: number;
  readonly semantics: number;
  readonly dataset: Digest;
  /** Under `on_data_change: continue`: the own checkpoint that this generation went on from. */
  readonly continuedFrom?: Json;
  readonly training?: string;
  readonly sampler?: string;
  readonly loss?: number;
  readonly heldOutLoss?: number;
  /** Mean reward of the last step, and of the first eval that looked on (`rl`). */
  readonly reward?: number;
  readonly evalReward?: number;
  /** Seconds of training, for estimates. */
  readonly seconds?: number;
}

export interface RunParts {
  readonly server: Upstream;
  /** The rows to train on, or the environment's tasks. */
  readonly dataset: Upstream;
  /** Of runs of type `rl`. */
  readonly environment: Upstream | undefined;
  readonly loss: SpecNode | undefined;
  readonly parent: Upstream | undefined;
  /** What is trained on, after `on_data_change`. */
  readonly data: Digest;
  readonly from: Json | undefined;
  /** The KL penalty's reference and its checkpoint, where one is named. */
  readonly reference: { readonly run: Upstream; readonly checkpoint: Json } | undefined;
}

export function resultsOf(record: { readonly results: unknown } | undefined): RunResults | undefined {
  return record?.results as RunResults | undefined;
}

type Looking = IdentifyContext<unknown, RunSeen>;

/** The server that a run names: all that most questions about it need. */
export const serverPart = ({ node, upstream }: Looking): Upstream => referenced(node, "server", upstream) as Upstream;

export const lossPart = ({ node, upstream }: Looking): SpecNode | undefined => referenced(node, "loss", upstream)?.node;

/** The blocks a run refers to and what follows from them. */
export function partsOf(context: Looking): RunParts {
  const { node, record, upstream } = context;
  const server = serverPart(context);
  const environment = referenced(node, "environment", upstream);
  // Tasks in sandboxes have no dataset: the environment knows its own.
  const dataset = (referenced(environment?.node ?? node, "dataset", upstream) ?? environment) as Upstream;
  const loss = lossPart(context);
  const start = node.references.find((candidate) => candidate.path === "from");
  const parent = start && upstream(start.to);
  const written = parent && parentOf(parent, start.selector);
  const current = (dataset.facts as DatasetFacts).digest;
  const before = resultsOf(record);
  const policy = stringAt(node, "on_data_change");
  const reference = referenceOf(node, upstream);
  const shared = { server, dataset, environment, loss, parent, reference };
  if (policy === "ignore" && before) return { ...shared, data: before.dataset, from: written };
  if (policy === "continue" && before && record) {
    const isMoved = before.dataset !== current && record.status === "ready";
    const own: Json = { generation: record.hash, incarnation: record.incarnation, at: { steps: before.step } };
    return { ...shared, data: current, from: isMoved ? own : (before.continuedFrom ?? written) };
  }
  return { ...shared, data: current, from: written };
}

function referenceOf(node: SpecNode, upstream: (to: Address) => Upstream): RunParts["reference"] {
  const reference = node.references.find((candidate) => candidate.path === "kl_reference");
  if (!reference) return undefined;
  const run = upstream(reference.to);
  return { run, checkpoint: parentOf(run, reference.selector) };
}

export function identifyRun(context: IdentifyContext<unknown, RunSeen>): Identity {
  const { node, record } = context;
  const written = partsOf(context);
  const before = resultsOf(record);
  const { model, revision } = written.server.facts as ServerFacts;
  // A folder is what is in it, wherever it lies.
  const isFolder = revision !== null && !isBuiltinModel(model);
  const base = isFolder ? revision : [model, revision].filter((part) => part !== null).join(" ");
  const generation = (parts: RunParts, semantics: number): Digest =>
    generationOf({
      node,
      loss: parts.loss,
      dataset: parts.data,
      environment: parts.environment?.identity.hash,
      reference: parts.reference?.checkpoint,
      model: isFolder ? { revision } : { name: model, revision },
      parent: parts.from,
      semantics,
    });
  // A run that went on from its own checkpoint stays what it is, also where `on_data_change` no longer says so.
  const continued = before?.continuedFrom && { ...written, from: before.continuedFrom };
  for (const parts of continued ? [written, continued] : [written]) {
    const hash = generation(parts, before?.semantics ?? SEMANTICS);
    if (hash === record?.hash) return { ...shownAttributes(node, parts, base), hash };
  }
  return { ...shownAttributes(node, written, base), hash: generation(written, SEMANTICS) };
}

function shownAttributes(node: SpecNode, parts: RunParts, base: string): Pick<Identity, "attributes" | "because"> {
  const attributes = new Map<string, SpecAttribute>();
  const because = new Map<string, Address>();
  const derived = (path: string, value: Value, address?: Address): void => {
    attributes.set(path, { value, change: "replace", isDefault: false });
    if (address) because.set(path, address);
  };
  for (const [path, attribute] of node.attributes) {
    // A name may change while what it names stays the same; what it names follows as an attribute of its own.
    if (NAMES.has(path)) attributes.set(path, { ...attribute, change: "update" });
    else if (path === "steps" || path === "epochs") attributes.set(path, { ...attribute, change: "extend" });
    else if (path.startsWith("schedule.")) attributes.set(path, { ...attribute, change: "replace" });
    else attributes.set(path, attribute);
  }
  derived("base_model", base, parts.server.node.address);
  derived("dataset.content", parts.data, parts.dataset.node.address);
  if (parts.loss) {
    const { address } = parts.loss;
    for (const [path, attribute] of parts.loss.attributes) {
      attributes.set(`loss.${path}`, attribute);
      because.set(`loss.${path}`, address);
    }
  }
  for (const [path, attribute] of parts.environment?.identity.attributes ?? []) {
    // What it names is an attribute of its own; the tasks are the run's dataset.
    if (path === "dataset") continue;
    attributes.set(`environment.${path}`, attribute);
    because.set(`environment.${path}`, parts.environment?.node.address as Address);
  }
  if (parts.reference)
    derived("kl_reference.checkpoint", parts.reference.checkpoint as Value, parts.reference.run.node.address);
  if (parts.from) derived("from.checkpoint", parts.from as Value, parts.parent?.node.address);
  const { horizon } = scheduleOf(node);
  if (horizon && !hasExplicitHorizon(node)) derived("schedule.horizon", { ...horizon });
  return { attributes, because };
}
