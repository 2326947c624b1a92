/** What a run's worker does around the training loop: lease, record, recovery, and an end that is always written down. */
import { join } from "node:path";
import { type Diagnostic, diagnostic, messageOf, RlcliError } from "../../diagnostic.ts";
import { JsonLinesFile, writeFileWhole } from "../../files.ts";
import type { ProjectContext } from "../../kind.ts";
import { ownIdentity } from "../../process.ts";
import { RUN_RECORD_VERSION, type RunEnd, type RunEvent, type RunOrder, type WorkerStatus } from "../../run-record.ts";
import { registerUser, unregister } from "../../servers/runtime.ts";
import { LocalStateStore } from "../../state/backends/local.ts";
import { Heartbeat, LEASE_TTL_MS, leaseOwner } from "../../state/lease.ts";
import { storeRecord } from "../../state/recovery.ts";
import type { StateStore } from "../../state/store.ts";
import type { RecordStatus, StateRecord } from "../../state-record.ts";
import { readRunRecord } from "../../training/progress.ts";
import { measureRate } from "../../training/rate.ts";
import { runTraining } from "../../training/training.ts";
import type { JsonObject } from "../../value.ts";
import { connect, isManaged, serverFolder } from "../connect.ts";
import type { RunResults } from "./identity.ts";
import { readWork, type WorkOrder } from "./work.ts";

export interface WorkerSurroundings {
  readonly env: ProjectContext["env"];
  readonly stop: AbortSignal;
  readonly now: () => Date;
}

/** Works a run to its end. Never throws for what a user can mend: the end says it. */
export async function workRun(folder: string, { env, stop, now }: WorkerSurroundings): Promise<RunEnd["status"]> {
  const work = readWork(folder);
  const store = new LocalStateStore(work.stateFolder);
  const owner = leaseOwner(`worker of ${work.draft.address}`);
  const lease = await store.renewLease(work.lease, LEASE_TTL_MS, owner);
  // Losing the lease means someone else works on this run: stop at the next step and store nothing over theirs.
  const lost = new AbortController();
  const heartbeat = new Heartbeat(store, lease, () => lost.abort());
  const status: Omit<WorkerStatus, "end"> = {
    formatVersion: RUN_RECORD_VERSION,
    process: ownIdentity(),
    leaseToken: lease.token,
    startedAt: now().toISOString(),
  };
  try {
    const record = await store.write(work.draft, { expect: work.expect, fence: lease.token });
    // Written second: whoever waits for the worker to have taken over then finds the record as well.
    writeStatus(folder, status);
    const project: ProjectContext = { ...work.project, env };
    const end = await trainSafely(folder, work, project, AbortSignal.any([stop, lost.signal]), now);
    const stored = await storeEnd(store, work, record, folder, end);
    const complete =
      stored.length > 0
        ? { ...end, status: "failed" as const, diagnostics: [...(end.diagnostics ?? []), ...stored] }
        : end;
    const rate = measureRate(folder, readOrder(folder));
    writeStatus(folder, { ...status, end: complete, ...(rate ? { rate } : {}) });
    return complete.status;
  } catch (error) {
    const end: RunEnd = { status: "failed", step: readRunRecord(folder).step, diagnostics: diagnosticsOf(error) };
    announce(folder, end, now);
    writeStatus(folder, { ...status, end });
    return "failed";
  } finally {
    heartbeat.close();
    await store.releaseLease(heartbeat.lease);
  }
}

async function trainSafely(
  folder: string,
  work: WorkOrder,
  project: ProjectContext,
  stop: AbortSignal,
  now: () => Date,
): Promise<RunEnd> {
  const { address } = work.server;
  const server = serverFolder(work.project.dataFolder, address);
  // Registered, so that nobody stops the server under the run without saying so.
  const registration = isManaged(work.server)
    ? registerUser(server, { address: work.draft.address, process: ownIdentity() })
    : undefined;
  try {
    return await runTraining(readOrder(folder), {
      folder,
      modelFolder: work.modelFolder,
      env: project.env,
      cacheFolder: project.cacheFolder,
      // A server may take minutes to start: nobody who wants to stop should have to wait for it.
      connect: () => connect(work.server, project, { signal: stop }),
      stop,
      now,
    });
  } catch (error) {
    const end: RunEnd = { status: "failed", step: readRunRecord(folder).step, diagnostics: diagnosticsOf(error) };
    announce(folder, end, now);
    return end;
  } finally {
    if (registration) unregister(registration);
  }
}

function readOrder(folder: string): RunOrder {
  const { order } = readRunRecord(folder);
  if (!order)
    throw new RlcliError(
      diagnostic("RL3007", `${join(folder, "spec.json")} is missing. Apply again to write it anew.`),
    );
  return order;
}

/** A bug of ours keeps its stack in the worker's log; the diagnostic says where that is. */
function diagnosticsOf(error: unknown): readonly Diagnostic[] {
  if (error instanceof RlcliError) return error.diagnostics;
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  return [
    diagnostic(
      "RL4004",
      `The worker met an error of its own: ${messageOf(error)}. This is a bug in rlcli; the run's log.txt has the details.`,
    ),
  ];
}

const STATUS: Readonly<Record<RunEnd["status"], RecordStatus>> = {
  complete: "ready",
  interrupted: "interrupted",
  failed: "failed",
};

async function storeEnd(
  store: StateStore,
  work: WorkOrder,
  record: StateRecord,
  folder: string,
  end: RunEnd,
): Promise<readonly Diagnostic[]> {
  const progress = readRunRecord(folder);
  const last = progress.durable.at(-1);
  const reward = progress.lastMetrics?.values?.["reward/mean"];
  const results: RunResults = {
    ...(work.draft.results as unknown as RunResults),
    step: end.step,
    ...(last ? { training: last.training } : {}),
    ...(last?.sampler ? { sampler: last.sampler } : {}),
    ...(progress.lastMetrics ? { loss: progress.lastMetrics.loss } : {}),
    ...(reward === undefined ? {} : { reward }),
    ...(last?.heldOutLoss === undefined ? {} : { heldOutLoss: last.heldOutLoss }),
    ...(last?.evalReward === undefined ? {} : { evalReward: last.evalReward }),
  };
  const draft = { ...work.draft, status: STATUS[end.status], results: results as unknown as JsonObject };
  return storeRecord(store, draft, { expect: record.version, fence: work.lease.token }, work.project.folder);
}

function announce(folder: string, end: RunEnd, now: () => Date): void {
  const events = new JsonLinesFile(join(folder, "events.jsonl"));
  events.append({ t: "end", at: now().toISOString(), end } satisfies RunEvent);
  events.close();
}

function writeStatus(folder: string, status: WorkerStatus): void {
  writeFileWhole(join(folder, "worker.json"), `${JSON.stringify(status)}\n`);
}
