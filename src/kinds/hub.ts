/** `source: hf://…`: where datasets of the spec meet hub, lock and cache. Used through `moving.ts`. */
import type { DatasetSource } from "../datasets/identity.ts";
import { type Diagnostic, type DiagnosticOptions, fail } from "../diagnostic.ts";
import type { DatasetHub } from "../hub/dataset.ts";
import { isPinnedDataset, type PinnedDataset } from "../hub/pinned.ts";
import { isHubName, parseReference } from "../hub/reference.ts";
import { hubSettings } from "../hub/settings.ts";
import type { ProjectContext } from "../kind.ts";
import { LOCK_FILE } from "../lock.ts";
import type { SpecNode } from "../spec.ts";
import { stringAt } from "./attributes.ts";

/** The name that a dataset takes its rows by, if they are on a hub. */
export function hubNameOf(node: SpecNode): string | undefined {
  const source = stringAt(node, "source");
  return source !== undefined && isHubName(source) ? source : undefined;
}

export interface HubSource {
  readonly pinned: PinnedDataset;
  /** The files as a dataset's sources; their paths are in the cache, where they are once downloaded. */
  readonly sources: readonly DatasetSource[];
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * What the dataset's name stands for: by the lock, else by asking, and then it is added to the lock. Undefined for a local source.
 * Fails with RL2005 to RL2007 or RL6020 to RL6022.
 */
export async function hubSource(
  node: SpecNode,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<HubSource | undefined> {
  const name = hubNameOf(node);
  if (name === undefined) return undefined;
  return withHub(node, project, signal, async (hub) => {
    const { pinned, diagnostics } = await pin(hub, name, node, project);
    const sources = pinned.files.map((file) => ({
      name: `hf://${pinned.id}@${pinned.commit.slice(0, 12)}/${file.path}`,
      path: hub.pathOf(file),
      digest: file.digest,
      bytes: file.bytes,
    }));
    return { pinned, sources, diagnostics };
  });
}

/** Downloads what is not here yet; `onProgress` is told in words. Fails with RL6020 to RL6023 or RL6006. */
export async function downloadHub(
  node: SpecNode,
  project: ProjectContext,
  { pinned }: HubSource,
  signal: AbortSignal,
  onProgress: (text: string) => void,
): Promise<void> {
  await withHub(node, project, signal, async (hub) => {
    if (hub.missingBytes(pinned) === 0) return;
    const total = pinned.files.reduce((sum, { bytes }) => sum + bytes, 0);
    await hub.download(pinned, downloadText(total, onProgress));
  });
}

/** Bytes that are there, told in words whenever those change. */
export function downloadText(totalBytes: number, onProgress: (text: string) => void): (doneBytes: number) => void {
  let said = "";
  return (done) => {
    const text = `downloading ${megabytes(done)} of ${megabytes(totalBytes)} MB`;
    if (text !== said) onProgress(text);
    said = text;
  };
}

/** Fails with RL6020 where its files are needed, are not here, and must not be fetched. */
export async function requireReachable(
  node: SpecNode,
  project: ProjectContext,
  { pinned }: HubSource,
  signal: AbortSignal,
): Promise<void> {
  await withHub(node, project, signal, async (hub) => hub.requireReachable(pinned));
}

const megabytes = (bytes: number): string => (bytes / 1e6).toFixed(bytes < 10e6 ? 1 : 0);

function placeOf(node: SpecNode): DiagnosticOptions {
  const range = node.rangeOf("source");
  return { address: node.address, range, sourceLine: node.lineOf(range) };
}

async function pin(hub: DatasetHub, name: string, node: SpecNode, { lock }: ProjectContext) {
  const place = placeOf(node);
  const reference = parseReference(name, place);
  const entry = lock?.get(name);
  if (entry) {
    if (!isPinnedDataset(entry)) {
      fail(
        "RL2005",
        `The entry of ${LOCK_FILE} for \`${name}\` is not what rlcli writes. Run \`rlcli lock --upgrade ${node.address}\`.`,
        place,
      );
    }
    return { pinned: entry, diagnostics: [] };
  }
  lock?.allowAdding(name, place);
  const found = await hub.pin(reference, { isFresh: lock?.isEdited ?? false });
  lock?.add(name, found.pinned, place);
  return found;
}

async function withHub<T>(
  node: SpecNode,
  { env, cacheFolder }: ProjectContext,
  signal: AbortSignal,
  work: (hub: DatasetHub) => Promise<T>,
): Promise<T> {
  const { DatasetHub } = await import("../hub/dataset.ts");
  const place = placeOf(node);
  const hub = new DatasetHub({ settings: hubSettings(env, place), cacheFolder, signal, place });
  try {
    return await work(hub);
  } finally {
    await hub.close();
  }
}
