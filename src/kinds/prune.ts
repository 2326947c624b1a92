/**
 * The retention policy: of each incarnation the final checkpoint, the best one and the last few stay (`keep_last`); what else a
 * crash or an older setting left goes, and rows that no record refers to. Only ever by hand: apply deletes no weights but the
 * rolling ones of the run at work.
 */
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "../address.ts";
import { datasetFolder } from "../datasets/dataset.ts";
import { fail } from "../diagnostic.ts";
import { shortDigest } from "../digest.ts";
import { JsonLinesFile } from "../files.ts";
import type { ProjectContext } from "../kind.ts";
import type { CheckpointLine } from "../run-record.ts";
import { archivePath, checkpointFolder, parseCheckpointPath } from "../servers/checkpoints.ts";
import type { Spec } from "../spec.ts";
import type { StateRecord } from "../state-record.ts";
import { prunable } from "../training/checkpoints.ts";
import { numberAt } from "./attributes.ts";
import { deleteCheckpoints, pathsOf, serverOfRun } from "./checkpoints.ts";
import { serverFolder } from "./connect.ts";
import { datasetsFolder } from "./dataset.ts";
import { resultsOf } from "./run/identity.ts";
import { deployedPlaces, namedSteps } from "./run/named.ts";
import type { Kept, KeptCheckpoint } from "./run/observe.ts";

export interface PruneInput {
  readonly project: ProjectContext;
  readonly spec: Spec | undefined;
  readonly records: ReadonlyMap<Address, StateRecord>;
  /** Every incarnation that left a run record, by run. */
  readonly runs: ReadonlyMap<Address, readonly Kept[]>;
}

export interface PruneOptions {
  /** Runs that are neither in the spec nor recorded. */
  readonly forgotten: boolean;
  /** Incarnations to keep of each run beside the current one, newest first; all where absent. */
  readonly keepGenerations?: number;
}

export interface Doomed {
  readonly what: string;
  readonly reason: string;
  readonly bytes: number;
  /** The run whose lease is needed. */
  readonly address?: Address;
  delete(signal: AbortSignal): Promise<void>;
}

const DEFAULT_KEEP_LAST = 3;

export function findDoomed(input: PruneInput, options: PruneOptions): readonly Doomed[] {
  const doomed: Doomed[] = [];
  const deployed = new Set(deployedPlaces(input.records.values()).map(({ training }) => training));
  for (const [address, incarnations] of input.runs) {
    const node = input.spec?.nodes.get(address);
    const record = input.records.get(address);
    if (!node && !record && !options.forgotten) continue;
    const keepLast = node ? (numberAt(node, "keep_last") ?? DEFAULT_KEEP_LAST) : DEFAULT_KEEP_LAST;
    const needed = namedSteps(input.spec, address);
    const isCurrent = (kept: Kept) => kept.generation === record?.hash && kept.incarnation === record.incarnation;
    const others = incarnations
      .filter((kept) => !isCurrent(kept))
      .sort((a, b) => modified(b.folder) - modified(a.folder));
    const spared = new Set([
      ...incarnations.filter(isCurrent),
      ...others.slice(0, options.keepGenerations ?? others.length),
    ]);
    for (const kept of incarnations) {
      const isWhole = !node && !record;
      const goes =
        isWhole || !spared.has(kept)
          ? kept.durable
          : prunable(kept.durable, keepLast).filter((c) => !needed.includes(c.step));
      const reason = isWhole
        ? "its run is forgotten"
        : spared.has(kept)
          ? `beyond the last ${keepLast}`
          : "an earlier generation";
      const free = goes.filter(({ training }) => !deployed.has(training));
      for (const checkpoint of free) doomed.push(doom(input, address, kept, checkpoint, reason));
    }
  }
  return [...doomed, ...unusedRows(input)];
}

export async function pruneDoomed(items: readonly Doomed[], signal: AbortSignal): Promise<void> {
  for (const item of items) await item.delete(signal);
}

function doom(input: PruneInput, address: Address, kept: Kept, checkpoint: KeptCheckpoint, reason: string): Doomed {
  const { project, spec, records } = input;
  const server = kept.server ?? serverOfRun(spec?.nodes.get(address), records.get(address)) ?? "server.default";
  const folder = serverFolder(project.dataFolder, server);
  const paths = pathsOf([checkpoint]);
  return {
    what: `${address}@${checkpoint.step} (${shortDigest(kept.generation)}/${kept.incarnation})`,
    reason,
    address,
    bytes: paths.reduce((sum, path) => sum + sizeOf(folder, path), 0),
    async delete(signal) {
      const deleted = await deleteCheckpoints({ project, server, node: spec?.nodes.get(server), signal }, paths);
      // What lies on a server that the spec no longer names cannot be reached: it is not to be written down as gone.
      if (deleted === 0) {
        fail(
          "RL5014",
          `The checkpoint of ${address} at step ${checkpoint.step} is not in ${server}'s folder, and the spec does not name the server that has it. Put ${server} back into the spec to delete it there.`,
          { address },
        );
      }
      const list = new JsonLinesFile(join(kept.folder, "checkpoints.jsonl"));
      list.append({ t: "pruned", at: new Date().toISOString(), step: checkpoint.step } satisfies CheckpointLine);
      list.sync();
      list.close();
    },
  };
}

function sizeOf(serverFolderPath: string, path: string): number {
  const parsed = parseCheckpointPath(path);
  if (!parsed) return 0;
  const archived = archivePath(serverFolderPath, parsed);
  const archive = statSync(archived, { throwIfNoEntry: false });
  return archive?.isFile() ? archive.size : folderSize(archive ? archived : checkpointFolder(serverFolderPath, parsed));
}

function unusedRows({ project, records }: PruneInput): readonly Doomed[] {
  const folder = datasetsFolder(project.dataFolder);
  const used = new Set(
    [...records.values()].flatMap((record) => [record.hash, resultsOf(record)?.dataset]).filter((d) => d !== undefined),
  );
  const usedFolders = new Set([...used].map((digest) => datasetFolder(folder, digest)));
  return list(folder)
    .map((name) => join(folder, name))
    .filter((path) => !usedFolders.has(path))
    .map((path) => ({
      what: `rows ${path.slice(folder.length + 1)}`,
      reason: "no dataset or run refers to them",
      bytes: folderSize(path),
      delete: async () => rmSync(path, { recursive: true, force: true }),
    }));
}

function folderSize(folder: string): number {
  let total = 0;
  for (const name of list(folder)) {
    const info = statSync(join(folder, name), { throwIfNoEntry: false });
    total += info?.isDirectory() ? folderSize(join(folder, name)) : (info?.size ?? 0);
  }
  return total;
}

function modified(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0;
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
