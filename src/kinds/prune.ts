/**
 * The retention policy: of each incarnation the final checkpoint, the best one and the last few stay (`keep_last`); what else a
 * crash or an older setting left goes, and rows that no record refers to. Only ever by hand: apply deletes no weights but the
 * rolling ones of the run at work.
 */
import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "../address.ts";
import { datasetFolder } from "../datasets/dataset.ts";
import { shortDigest } from "../digest.ts";
import { JsonLinesFile } from "../files.ts";
import type { ProjectContext } from "../kind.ts";
import type { CheckpointLine } from "../run-record.ts";
import { checkpointFolder, deleteCheckpoint, parseCheckpointPath } from "../servers/checkpoints.ts";
import type { Spec } from "../spec.ts";
import type { StateRecord } from "../state-record.ts";
import { numberAt } from "./attributes.ts";
import { serverFolder } from "./connect.ts";
import { datasetsFolder } from "./dataset.ts";
import { resultsOf } from "./run/identity.ts";
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
  delete(): void;
}

const DEFAULT_KEEP_LAST = 3;

export function findDoomed(input: PruneInput, options: PruneOptions): readonly Doomed[] {
  const doomed: Doomed[] = [];
  for (const [address, incarnations] of input.runs) {
    const node = input.spec?.nodes.get(address);
    const record = input.records.get(address);
    if (!node && !record && !options.forgotten) continue;
    const keepLast = node ? (numberAt(node, "keep_last") ?? DEFAULT_KEEP_LAST) : DEFAULT_KEEP_LAST;
    const needed = neededSteps(input, address);
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
      const goes = isWhole || !spared.has(kept) ? kept.durable : surplus(kept, keepLast, needed);
      const reason = isWhole
        ? "its run is forgotten"
        : spared.has(kept)
          ? `beyond the last ${keepLast}`
          : "an earlier generation";
      for (const checkpoint of goes) doomed.push(doom(input, address, kept, checkpoint, reason));
    }
  }
  return [...doomed, ...unusedRows(input)];
}

export function pruneDoomed(items: readonly Doomed[]): void {
  for (const item of items) item.delete();
}

/** Steps that another run starts from by name. */
function neededSteps({ spec }: PruneInput, address: Address): ReadonlySet<number> {
  const steps = new Set<number>();
  for (const node of spec?.nodes.values() ?? []) {
    for (const { path, to, selector } of node.references) {
      if (path === "from" && to === address && selector !== undefined) steps.add(Number(selector));
    }
  }
  return steps;
}

/** Neither final, best, among the last, nor what another run starts from. */
function surplus(kept: Kept, keepLast: number, needed: ReadonlySet<number>): readonly KeptCheckpoint[] {
  const ascending = [...kept.durable].sort((a, b) => a.step - b.step);
  const last = new Set(ascending.slice(-Math.max(1, keepLast)));
  const best = bestOf(ascending);
  return ascending.filter((c) => !last.has(c) && c.final === undefined && c !== best && !needed.has(c.step));
}

function bestOf(checkpoints: readonly KeptCheckpoint[]): KeptCheckpoint | undefined {
  return checkpoints
    .filter((c) => c.heldOutLoss !== undefined)
    .sort((a, b) => (a.heldOutLoss as number) - (b.heldOutLoss as number))[0];
}

function doom(input: PruneInput, address: Address, kept: Kept, checkpoint: KeptCheckpoint, reason: string): Doomed {
  const folder = serverFolder(input.project.dataFolder, serverOf(input, address));
  const paths = [checkpoint.training, ...(checkpoint.sampler ? [checkpoint.sampler] : [])];
  return {
    what: `${address}@${checkpoint.step} (${shortDigest(kept.generation)}/${kept.incarnation})`,
    reason,
    address,
    bytes: paths.reduce((sum, path) => sum + sizeOf(folder, path), 0),
    delete() {
      for (const path of paths) deleteCheckpoint(folder, path);
      const list = new JsonLinesFile(join(kept.folder, "checkpoints.jsonl"));
      list.append({ t: "pruned", at: new Date().toISOString(), step: checkpoint.step } satisfies CheckpointLine);
      list.sync();
      list.close();
    },
  };
}

function serverOf({ spec, records }: PruneInput, address: Address): Address {
  const written = spec?.nodes.get(address)?.references.find((reference) => reference.path === "server")?.to;
  return written ?? records.get(address)?.dependsOn.find((to) => to.startsWith("server.")) ?? "server.default";
}

function sizeOf(serverFolderPath: string, path: string): number {
  const parsed = parseCheckpointPath(path);
  return parsed ? folderSize(checkpointFolder(serverFolderPath, parsed)) : 0;
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
      delete: () => rmSync(path, { recursive: true, force: true }),
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
