/** What a run record says, read without network and without changing anything: for plans, status and drift. */
import { readFileSync } from "node:fs";
import { type Diagnostic, diagnostic, messageOf } from "../diagnostic.ts";
import { readJsonLines, readTail } from "../files.ts";
import { isAlive } from "../process.ts";
import {
  type MetricsLine,
  RUN_RECORD_VERSION,
  type RunEnd,
  type RunEvent,
  type RunOrder,
  type SandboxCount,
  type WorkerStatus,
} from "../run-record.ts";
import { type DurableCheckpoint, readCheckpoints } from "./checkpoints.ts";
import { readJournal } from "./journal.ts";
import { RECORD_FILES } from "./record.ts";

export interface RunProgress {
  /** Absent where no record is there, or it cannot be read. */
  readonly order?: RunOrder;
  /** The last step done and not rolled back. */
  readonly step: number;
  /** By step. */
  readonly durable: readonly DurableCheckpoint[];
  /** How the last work on it ended; absent while it goes on, and after a crash. */
  readonly end?: RunEnd;
  readonly worker?: WorkerStatus;
  readonly workerAlive: boolean;
  readonly lastMetrics?: MetricsLine;
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads a record that may be missing, half-written or damaged: damage is in the diagnostics (RL3007). */
export function readRunRecord(folder: string): RunProgress {
  const path = (file: keyof typeof RECORD_FILES) => `${folder}/${RECORD_FILES[file]}`;
  const diagnostics: Diagnostic[] = [];
  const order = readObject<RunOrder>(path("order"), diagnostics);
  const worker = readObject<WorkerStatus>(path("worker"), diagnostics);
  const journal = readJournal(path("journal"));
  const checkpoints = readCheckpoints(path("checkpoints"));
  const lastMetrics = readJsonLines<MetricsLine>(path("metrics")).values.at(-1);
  diagnostics.push(...journal.diagnostics, ...checkpoints.diagnostics);
  const { end, done } = journal.state;
  // The worker's own word holds the diagnostics; the journal's holds even if the worker died right after it.
  const isSameEnd = end && worker?.end?.status === end.status && worker.end.step === end.step;
  const said = end && (isSameEnd ? worker.end : { status: end.status, step: end.step });
  return {
    ...(order ? { order } : {}),
    step: done,
    durable: checkpoints.list,
    ...(said ? { end: said } : {}),
    ...(worker ? { worker } : {}),
    workerAlive: isAtWork(worker),
    ...(lastMetrics ? { lastMetrics } : {}),
    diagnostics,
  };
}

/**
 * As `readRunRecord`, for a look at thousands of runs: of one whose worker wrote down that it is complete, the journal and the
 * metrics, which grow with every step, are left alone. Whoever trains on reads them and reports what is damaged.
 */
export function readRunSummary(folder: string): RunProgress {
  const path = (file: keyof typeof RECORD_FILES) => `${folder}/${RECORD_FILES[file]}`;
  const diagnostics: Diagnostic[] = [];
  const worker = readObject<WorkerStatus>(path("worker"), diagnostics);
  if (worker?.end?.status !== "complete") return readRunRecord(folder);
  const order = readObject<RunOrder>(path("order"), diagnostics);
  const checkpoints = readCheckpoints(path("checkpoints"));
  return {
    ...(order ? { order } : {}),
    step: worker.end.step,
    durable: checkpoints.list,
    end: worker.end,
    worker,
    workerAlive: false,
    diagnostics: [...diagnostics, ...checkpoints.diagnostics],
  };
}

/** Whether a worker is at work on a run, without reading what grows with every step: for whoever asks again and again. */
export function hasWorker(folder: string): boolean {
  return isAtWork(readObject<WorkerStatus>(`${folder}/${RECORD_FILES.worker}`, []));
}

const isAtWork = (worker: WorkerStatus | undefined): boolean =>
  worker !== undefined && worker.end === undefined && isAlive(worker.process);

/** Enough for some hundred events. */
const LAST_EVENTS_BYTES = 32_768;

/** How many sandboxes the worker told last that there are; undefined where it uses none. */
export function readSandboxes(folder: string): SandboxCount | undefined {
  let text: string;
  try {
    ({ text } = readTail(`${folder}/${RECORD_FILES.events}`, LAST_EVENTS_BYTES));
  } catch {
    return undefined;
  }
  const told = text.split("\n").findLast((line) => line.startsWith('{"t":"sandboxes"') && line.endsWith("}"));
  return told === undefined ? undefined : sandboxesOf(told);
}

/** Undefined for a line that a crash tore. */
function sandboxesOf(line: string): SandboxCount | undefined {
  try {
    return (JSON.parse(line) as Extract<RunEvent, { t: "sandboxes" }>).sandboxes;
  } catch {
    return undefined;
  }
}

function readObject<T extends { readonly formatVersion: number }>(
  path: string,
  diagnostics: Diagnostic[],
): T | undefined {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    diagnostics.push(diagnostic("RL3007", `${path} cannot be read: ${messageOf(error)}.`));
    return undefined;
  }
  try {
    const value = JSON.parse(text) as T;
    if (value.formatVersion === RUN_RECORD_VERSION) return value;
    diagnostics.push(
      diagnostic(
        "RL3006",
        `${path} has format version ${value.formatVersion}; this rlcli reads ${RUN_RECORD_VERSION}.`,
      ),
    );
  } catch (error) {
    diagnostics.push(diagnostic("RL3007", `${path} is damaged: ${messageOf(error)}.`));
  }
  return undefined;
}
