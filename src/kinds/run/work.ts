/**
 * A worker's order beyond training: which lease it works under, what record it writes, how it reaches the server. `apply`
 * writes it as `work.json` beside the run record and starts the process; nothing in it is secret.
 */
import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fail, messageOf } from "../../diagnostic.ts";
import { entryPath } from "../../entry.ts";
import { writeFileWhole } from "../../files.ts";
import type { ProjectContext } from "../../kind.ts";
import type { LeaseRecord, StateRecordDraft } from "../../state-record.ts";
import type { ServerSettings } from "../connect.ts";

export const WORK_VERSION = 1;

export interface WorkOrder {
  readonly formatVersion: typeof WORK_VERSION;
  readonly project: Omit<ProjectContext, "env">;
  readonly stateFolder: string;
  readonly lease: LeaseRecord;
  /** Version of the address's record when the lease was taken; 0 for none. */
  readonly expect: number;
  /** The record without what only the end of the work tells. */
  readonly draft: StateRecordDraft;
  readonly server: ServerSettings;
  readonly modelFolder: string;
}

const workPath = (folder: string): string => join(folder, "work.json");

export function writeWork(folder: string, work: WorkOrder): void {
  writeFileWhole(workPath(folder), `${JSON.stringify(work, undefined, 1)}\n`);
}

export function readWork(folder: string): WorkOrder {
  try {
    return JSON.parse(readFileSync(workPath(folder), "utf8")) as WorkOrder;
  } catch (error) {
    return fail(
      "RL3007",
      `${workPath(folder)} does not hold a worker's order: ${messageOf(error)}. Apply again to write it anew.`,
    );
  }
}

/**
 * What a step allocates (answers, tensors, what is sent) lives until its end and then dies at once. With V8's first sizes of a heap it would
 * be carried into the old generation, and all of that be gone through, in every step.
 */
const HEAP_FLAGS = ["--min-semi-space-size=32", "--max-semi-space-size=32", "--initial-old-space-size=128"];

/** Starts the worker in a process group of its own, so that a Ctrl-C in the terminal reaches it only through `apply`. */
export function startWorker(folder: string, env: ProjectContext["env"]): number {
  mkdirSync(folder, { recursive: true });
  const log = openSync(join(folder, "log.txt"), "a");
  try {
    const child = spawn(process.execPath, [...HEAP_FLAGS, entryPath("run-worker"), folder], {
      detached: true,
      stdio: ["ignore", log, log],
      env: env as NodeJS.ProcessEnv,
    });
    child.unref();
    if (child.pid === undefined)
      fail("RL4001", "The worker process could not be started. Check the limits on processes and memory.");
    return child.pid;
  } finally {
    closeSync(log);
  }
}
