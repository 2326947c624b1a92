/** What is really there of a run: every generation and incarnation that left a run record, and who works on it. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { type Address, nameOf, parseAddress } from "../../address.ts";
import type { Busy, Drift } from "../../change.ts";
import type { Diagnostic } from "../../diagnostic.ts";
import { type Digest, shortDigest } from "../../digest.ts";
import type { Observation, ReadContext } from "../../kind.ts";
import type { RunEnd, RunLength, RunRate } from "../../run-record.ts";
import { type RunProgress, readRunSummary } from "../../training/progress.ts";
import { measureRate } from "../../training/rate.ts";
import { type CheckpointLister, checkpointLister } from "../checkpoints.ts";
import { type CheckpointForm, checkpointForm } from "./form.ts";

export interface KeptCheckpoint {
  readonly step: number;
  readonly training: string;
  readonly sampler?: string;
  readonly final?: RunLength;
  /** Made the final one by hand. */
  readonly accepted?: true;
  readonly heldOutLoss?: number;
  readonly evalReward?: number;
}

/** One incarnation of one generation, as its run record tells. */
export interface Kept {
  readonly folder: string;
  readonly generation: Digest;
  readonly incarnation: number;
  /** The server that it was trained on. */
  readonly server?: Address;
  /** In which form that server keeps checkpoints; undefined where they cannot be moved. */
  readonly form?: CheckpointForm;
  /** Checkpoints that are recorded and, where that could be asked, really there; ascending. */
  readonly durable: readonly KeptCheckpoint[];
  /** Recorded but gone from the server. */
  readonly missing: readonly KeptCheckpoint[];
  /** Sampler weights that are gone of checkpoints that are there: steps and paths. */
  readonly samplersGone: readonly { readonly step: number; readonly path: string }[];
  /** The last step done. */
  readonly step: number;
  readonly length?: RunLength;
  readonly end?: RunEnd;
  readonly rate?: RunRate;
}

export interface RunSeen {
  /** Newest incarnation first within a generation. */
  readonly kept: readonly Kept[];
  /** Folder of the incarnation that a live worker is on. */
  readonly busy?: string;
}

/** `.rlcli/runs/<name>`: of all generations. */
export const recordsFolder = (dataFolder: string, run: Address): string => join(dataFolder, "runs", nameOf(run));

/** `.rlcli/runs/<name>/<generation>/<incarnation>` */
export function runFolder(dataFolder: string, name: string, generation: string, incarnation: number): string {
  return join(recordsFolder(dataFolder, `run.${name}`), shortDigest(generation), String(incarnation));
}

export async function observeRun(context: ReadContext): Promise<Observation<RunSeen>> {
  const { project, address, record } = context;
  const kept: Kept[] = [];
  const drift: Drift[] = [];
  const diagnostics: Diagnostic[] = [];
  let busy: { folder: string; who: Busy } | undefined;
  const listers = new Map<Address, CheckpointLister>();
  const listerOf = (server: Address): CheckpointLister => {
    const lister = listers.get(server) ?? checkpointLister(context, server);
    listers.set(server, lister);
    return lister;
  };
  for (const folder of recordFolders(recordsFolder(project.dataFolder, address))) {
    const progress = readRunSummary(folder);
    const isCurrent =
      record !== undefined &&
      folder === runFolder(project.dataFolder, nameOf(address), record.hash, record.incarnation);
    // Damage to what the record points at is an error; an old incarnation's is worth a warning, since it only narrows what can be restored.
    diagnostics.push(
      ...progress.diagnostics.map((d): Diagnostic => ({ ...d, address, severity: isCurrent ? "error" : "warning" })),
    );
    if (!progress.order) continue;
    if (progress.workerAlive && progress.worker) {
      const { process } = progress.worker;
      const { generation: hash, incarnation } = progress.order;
      const lineage = { hash, incarnation };
      busy = { folder, who: { owner: `worker of ${address} (pid ${process.pid})`, step: progress.step, lineage } };
    }
    const { server } = progress.order;
    const form = checkpointForm(context.nodeOf(server));
    // Elsewhere sampler weights may expire, which is no drift.
    const ownsSamplers = form !== undefined;
    kept.push({ ...(await keptOf(folder, progress, listerOf(server), ownsSamplers)), ...(form ? { form } : {}) });
  }
  kept.sort((a, b) => b.incarnation - a.incarnation);
  const current = kept.find((k) => k.generation === record?.hash && k.incarnation === record?.incarnation);
  for (const gone of current?.missing ?? []) {
    drift.push({ message: `its checkpoint at step ${gone.step} (${gone.training}) is gone`, mend: "none" });
  }
  for (const { step, path } of current?.samplersGone ?? []) {
    drift.push({ message: `its weights for sampling at step ${step} (${path}) are gone`, mend: "none" });
  }
  if (record && !current) drift.push({ message: "its run record is gone from .rlcli/runs", mend: "none" });
  return {
    status: record && !current ? "absent" : "present",
    seen: { kept, ...(busy ? { busy: busy.folder } : {}) },
    drift,
    ...(busy ? { busy: busy.who } : {}),
    ...(diagnostics.length > 0 ? { diagnostics } : {}),
  };
}

/** Every run that left a run record here, also those that neither the spec nor the state knows any more. */
export function runsWithRecords(dataFolder: string): readonly Address[] {
  return list(join(dataFolder, "runs"))
    .map((name): Address => `run.${name}`)
    .filter((address) => parseAddress(address) !== undefined);
}

/** Every incarnation of every run that left a record here, as the records tell; nobody is asked whether checkpoints are there. */
export function observedRuns(dataFolder: string): readonly (RunProgress & { readonly address: Address })[] {
  return runsWithRecords(dataFolder).flatMap((address) =>
    recordFolders(recordsFolder(dataFolder, address)).map((folder) => ({ ...readRunSummary(folder), address })),
  );
}

function recordFolders(folder: string): readonly string[] {
  return list(folder).flatMap((generation) =>
    list(`${folder}/${generation}`).map((incarnation) => `${folder}/${generation}/${incarnation}`),
  );
}

function list(folder: string): readonly string[] {
  try {
    return readdirSync(folder).sort();
  } catch (error) {
    if (!["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    return [];
  }
}

async function keptOf(
  folder: string,
  progress: RunProgress,
  exists: CheckpointLister,
  ownsSamplers: boolean,
): Promise<Kept> {
  const { order } = progress as RunProgress & { order: NonNullable<RunProgress["order"]> };
  const durable: KeptCheckpoint[] = [];
  const missing: KeptCheckpoint[] = [];
  const samplersGone: { step: number; path: string }[] = [];
  for (const checkpoint of progress.durable) {
    const { sampler, ...training } = checkpoint;
    if ((await exists(checkpoint.training)) === false) missing.push(checkpoint);
    else if (ownsSamplers && sampler !== undefined && (await exists(sampler)) === false) {
      samplersGone.push({ step: checkpoint.step, path: sampler });
      durable.push(training);
    } else durable.push(checkpoint);
  }
  const rate = progress.worker?.rate ?? measureRate(folder, order);
  return {
    folder,
    generation: order.generation,
    incarnation: order.incarnation,
    server: order.server,
    durable,
    missing,
    samplersGone,
    step: progress.step,
    length: order.length,
    ...(progress.end ? { end: progress.end } : {}),
    ...(rate ? { rate } : {}),
  };
}
