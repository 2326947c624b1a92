/** Whether checkpoints are there, and their removal, on whichever server keeps them. */
import { accessSync, constants } from "node:fs";
import { type Address, parseAddress } from "../address.ts";
import type { ProjectContext, ReadContext } from "../kind.ts";
import { checkpointExists, deleteCheckpoint } from "../servers/checkpoints.ts";
import { readRuntime } from "../servers/runtime.ts";
import type { SpecNode } from "../spec.ts";
import type { StateRecord } from "../state-record.ts";
import { stringAt } from "./attributes.ts";
import { openClient } from "./client.ts";
import { serverFolder, serverSettings } from "./connect.ts";
import { isRemote } from "./skyrl.ts";

/** Tells of a checkpoint path whether it exists: true, false, or undefined where the server that keeps it cannot be asked now. */
export type CheckpointLister = (path: string) => Promise<boolean | undefined>;

/** Of what `server` keeps. Checkpoints of servers of ours are files here, so it need not run; an external server is asked once per run. */
export function checkpointLister(context: ReadContext, server: Address): CheckpointLister {
  const node = context.nodeOf(server);
  if (node && stringAt(node, "backend") === "external") return externalLister(context, node);
  const folder = serverFolder(context.project.dataFolder, server);
  // Those of a server on another machine are there: it is asked while it runs, and not started for it.
  if (node && isRemote(stringAt(node, "host")))
    return readRuntime(folder).state === "running" ? externalLister(context, node) : async () => undefined;
  // Another user's folder tells nothing of what is in it.
  return async (path) => (isClosed(folder) ? undefined : checkpointExists(folder, path));
}

function isClosed(folder: string): boolean {
  try {
    accessSync(folder, constants.R_OK | constants.X_OK);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES";
  }
}

function externalLister({ project, signal }: ReadContext, node: SpecNode): CheckpointLister {
  const listings = new Map<string, Promise<ReadonlySet<string> | undefined>>();
  return async (path) => {
    const run = /^tinker:\/\/([^/]+)\//.exec(path)?.[1];
    if (!run) return undefined;
    let listing = listings.get(run);
    if (!listing) {
      listing = listCheckpoints(node, project, run, signal).catch(() => undefined);
      listings.set(run, listing);
    }
    return (await listing)?.has(path);
  };
}

async function listCheckpoints(
  node: SpecNode,
  project: ReadContext["project"],
  run: string,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  const client = await openClient(serverSettings(node), project, signal);
  try {
    return new Set((await client.listCheckpoints(run, { signal })).map((checkpoint) => checkpoint.tinkerPath));
  } finally {
    await client.close();
  }
}

export interface CheckpointPlace {
  readonly project: ProjectContext;
  readonly server: Address;
  /** The server's block, where the spec still has it. */
  readonly node: SpecNode | undefined;
  readonly signal: AbortSignal;
}

/** Deletes checkpoints where they are; those already gone are no error. Returns how many were deleted. */
export async function deleteCheckpoints(place: CheckpointPlace, paths: readonly string[]): Promise<number> {
  const { project, server, node, signal } = place;
  if (paths.length === 0) return 0;
  if (!node || (stringAt(node, "backend") !== "external" && !isRemote(stringAt(node, "host")))) {
    const folder = serverFolder(project.dataFolder, server);
    return paths.filter((path) => deleteCheckpoint(folder, path)).length;
  }
  const client = await openClient(serverSettings(node), project, signal);
  try {
    let deleted = 0;
    for (const path of paths) if (await client.deleteCheckpoint(path, { signal })) deleted += 1;
    return deleted;
  } finally {
    await client.close();
  }
}

/** All paths of checkpoints, training and sampler. */
export function pathsOf(
  checkpoints: readonly { readonly training: string; readonly sampler?: string }[],
): readonly string[] {
  return checkpoints.flatMap(({ training, sampler }) => (sampler ? [training, sampler] : [training]));
}

/** The server that holds a run's checkpoints, by its block or else by its record. */
export function serverOfRun(node: SpecNode | undefined, record: StateRecord | undefined): Address | undefined {
  const written = node?.references.find((reference) => reference.path === "server")?.to;
  return written ?? record?.dependsOn.find((address) => parseAddress(address)?.kind === "server");
}
