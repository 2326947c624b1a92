/** Sources of a dataset that are not files here: datasets of a hub, and files at addresses. What they stand for is locked. */
import { join } from "node:path";
import type { DatasetSource } from "../datasets/identity.ts";
import type { Diagnostic } from "../diagnostic.ts";
import type { ProjectContext } from "../kind.ts";
import type { SpecNode } from "../spec.ts";
import { isRemoteAddress } from "../url.ts";
import { downloadHub, hubNameOf, hubSource, requireReachable } from "./hub.ts";

export interface MovingSources {
  /** By name as written. Their paths are in the cache, where they are once downloaded. */
  readonly byName: ReadonlyMap<string, readonly DatasetSource[]>;
  readonly diagnostics: readonly Diagnostic[];
  /** Where they are told without the rows. */
  readonly columns?: readonly string[] | undefined;
  /** Whether a path is in the cache, and says nothing to people. */
  isMoving(path: string): boolean;
  /** Downloads what is not here yet; `onProgress` is told in words. Fails with RL6020 to RL6023, RL6030 to RL6034 or RL6006. */
  download(onProgress: (text: string) => void): Promise<void>;
  /** Fails where what is not here could not be had now. */
  requireReachable(): Promise<void>;
}

/** The names that a dataset takes its rows by and that may stand for something else tomorrow. */
export function movingNames(node: SpecNode): readonly string[] {
  const hub = hubNameOf(node);
  return hub === undefined ? remoteNames(node) : [hub];
}

/** `source`, or members of `import.from`, that are addresses. */
function remoteNames(node: SpecNode): readonly string[] {
  const from = node.attributes.get("import.from")?.value;
  const names = [node.attributes.get("source")?.value, ...(Array.isArray(from) ? from : [])];
  const addresses = names.filter((name): name is string => typeof name === "string" && isRemoteAddress(name));
  return [...new Set(addresses)];
}

/**
 * What these names stand for: by the lock, else by asking, and then it is added to the lock. Undefined where all sources are files
 * here. Fails with RL2005 to RL2007, RL6020 to RL6022 or RL6030 to RL6034.
 */
export async function movingSources(
  node: SpecNode,
  project: ProjectContext,
  signal: AbortSignal,
): Promise<MovingSources | undefined> {
  const isMoving = (path: string): boolean => path.startsWith(join(project.cacheFolder, ""));
  const hubName = hubNameOf(node);
  if (hubName !== undefined) {
    const hub = await hubSource(node, project, signal);
    return (
      hub && {
        byName: new Map([[hubName, hub.sources]]),
        diagnostics: hub.diagnostics,
        columns: hub.pinned.columns,
        isMoving,
        download: (onProgress) => downloadHub(node, project, hub, signal, onProgress),
        requireReachable: () => requireReachable(node, project, hub, signal),
      }
    );
  }
  const names = remoteNames(node);
  if (names.length === 0) return undefined;
  const { RemoteSources } = await import("./remote.ts");
  const sources = new RemoteSources(node, project, signal);
  return { byName: await sources.pin(names), diagnostics: [], isMoving, ...sources.verbs() };
}
