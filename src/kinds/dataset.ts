/** `datasets:` — rows to train on. Its identity is the digest of its sources and of how they are read, known before any import. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { nameOf } from "../address.ts";
import { type DatasetRequest, datasetIdentity, importDataset, manifestPath } from "../datasets/dataset.ts";
import type { Digest } from "../digest.ts";
import { DigestCache } from "../digest-cache.ts";
import type { ActContext, Identity, Kind, Outcome, ProjectContext, Resolved } from "../kind.ts";
import type { SpecAttribute, SpecNode } from "../spec.ts";
import type { Value } from "../value.ts";
import { numberAt, ruleOf, stringAt } from "./attributes.ts";

export interface DatasetFacts {
  /** Identity: contents of the sources in order, and the import's options. */
  readonly digest: Digest;
  readonly sources: readonly { readonly path: string; readonly digest: Digest; readonly bytes: number }[];
}

/** `.rlcli/datasets/`, where imports land by identity. */
export function datasetsFolder(dataFolder: string): string {
  return join(dataFolder, "datasets");
}

/** How a block's sources are read: `source: file` is the `messages` format without filters. */
export function requestOf(node: SpecNode, folder: string): DatasetRequest {
  const source = stringAt(node, "source");
  if (source !== undefined) {
    return { format: "messages", from: [source], baseFolder: folder, options: { min_messages: 1 } };
  }
  const from = node.attributes.get("import.from")?.value as readonly string[];
  const limit = numberAt(node, "import.limit");
  return {
    format: stringAt(node, "import.format") ?? "auto",
    from,
    baseFolder: folder,
    options: { min_messages: numberAt(node, "import.min_messages") ?? 2, ...(limit === undefined ? {} : { limit }) },
  };
}

async function resolve(node: SpecNode, project: ProjectContext, signal: AbortSignal): Promise<Resolved<DatasetFacts>> {
  const cache = new DigestCache(join(project.dataFolder, "cache", `digests-${node.name}.json`));
  const identity = await datasetIdentity(requestOf(node, project.folder), {
    signal,
    digestFile: (path) => cache.digest(path, signal),
    range: node.rangeOf(node.attributes.has("source") ? "source" : "import.from"),
    address: node.address,
  });
  if (existsSync(project.dataFolder)) cache.save();
  return {
    facts: identity,
    inputs: identity.sources.map(({ path, digest }) => ({ type: "file", path, digest })),
    diagnostics: [],
  };
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
  context.phase("importing");
  const manifest = await importDataset(requestOf(node, project.folder), {
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
