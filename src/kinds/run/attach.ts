/** Follows a worker from outside: its events as they come, and how it ended, also where it ended without saying so. */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isHeader } from "../../files.ts";
import { isAlive, processIdentity, signalProcess } from "../../process.ts";
import type { RunEnd, RunEvent, WorkerStatus } from "../../run-record.ts";
import { LineTail } from "../../tail.ts";

const POLL_MS = 100;
/** Of an event, in bytes. */
const LONGEST_LINE = 1 << 16;
/** While nothing happens: whoever follows a run must not cost what its worker costs. */
const LONGEST_POLL_MS = 1000;

export interface AttachOptions {
  /** First Ctrl-C: asks the worker to stop at the end of its step. */
  readonly stop: AbortSignal;
  /** Second: kills it. */
  readonly kill: AbortSignal;
  /** Byte of events.jsonl to read from. */
  readonly from: number;
  onEvent(event: RunEvent): void;
}

/** End of the last whole line of the event file now, to attach from here on: what a crash tore off is cut by the next worker. */
export function eventsOffset(folder: string): number {
  let fd: number;
  try {
    fd = openSync(join(folder, "events.jsonl"), "r");
  } catch {
    return 0;
  }
  try {
    const { size } = fstatSync(fd);
    const bytes = Buffer.alloc(Math.min(size, LONGEST_LINE));
    const read = bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, size - bytes.length));
    return size - bytes.length + read.lastIndexOf(10) + 1;
  } finally {
    closeSync(fd);
  }
}

/** Resolves with the end that the worker wrote, or undefined if it died without one. */
export async function attachWorker(folder: string, pid: number, options: AttachOptions): Promise<RunEnd | undefined> {
  const identity = processIdentity(pid);
  const tail = new EventTail(join(folder, "events.jsonl"), options.from);
  let hasAsked = false;
  let pauseMs = POLL_MS;
  for (;;) {
    // Liveness is looked at before the files: whatever a dead worker wrote is then there to be read.
    const isRunning = identity !== undefined && isAlive(identity);
    const events = tail.read();
    for (const event of events) options.onEvent(event);
    if (!isRunning) return readStatus(folder)?.process.pid === pid ? readStatus(folder)?.end : undefined;
    if (options.kill.aborted) signalProcess(identity, "SIGKILL");
    // Not before it has taken over: until it listens for the signal, that would be its death.
    else if (options.stop.aborted && !hasAsked && readStatus(folder)?.process.pid === pid) {
      signalProcess(identity, "SIGTERM");
      hasAsked = true;
    }
    pauseMs = events.length > 0 || options.stop.aborted ? POLL_MS : Math.min(LONGEST_POLL_MS, pauseMs * 2);
    await sleepUnless(options.stop, pauseMs);
  }
}

/** Shorter where the signal is aborted on the way; an aborted one shortens nothing. */
async function sleepUnless(signal: AbortSignal, ms: number): Promise<void> {
  await sleep(ms, undefined, signal.aborted ? {} : { signal }).catch(() => {});
}

/** Waits until a started worker has the lease and its record is stored; false if it ended before. */
export async function hasTakenOver(folder: string, pid: number): Promise<boolean> {
  for (;;) {
    const isRunning = processIdentity(pid) !== undefined;
    const status = readStatus(folder);
    if (status?.process.pid === pid && !status.end) return true;
    if (!isRunning) return false;
    await sleep(POLL_MS);
  }
}

export function readStatus(folder: string): WorkerStatus | undefined {
  try {
    return JSON.parse(readFileSync(join(folder, "worker.json"), "utf8")) as WorkerStatus;
  } catch {
    return undefined;
  }
}

/** Reads events as they are written. */
export class EventTail {
  readonly #tail: LineTail;
  constructor(path: string, offset: number) {
    this.#tail = new LineTail(path, offset);
  }

  read(): readonly RunEvent[] {
    return this.#tail
      .read()
      .split("\n")
      .flatMap((line) => {
        try {
          const value: unknown = JSON.parse(line);
          return isHeader(value) ? [] : [value as RunEvent];
        } catch {
          // The empty one behind the last newline, or damage.
          return [];
        }
      });
  }
}
