/** Follows a worker from outside: its events as they come, and how it ended, also where it ended without saying so. */
import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { isHeader } from "../../files.ts";
import { isAlive, processIdentity, signalProcess } from "../../process.ts";
import type { RunEnd, RunEvent, WorkerStatus } from "../../run-record.ts";

const POLL_MS = 100;

export interface AttachOptions {
  /** First Ctrl-C: asks the worker to stop at the end of its step. */
  readonly stop: AbortSignal;
  /** Second: kills it. */
  readonly kill: AbortSignal;
  /** Byte of events.jsonl to read from. */
  readonly from: number;
  onEvent(event: RunEvent): void;
}

/** Size of the event file now, to attach from here on. */
export function eventsOffset(folder: string): number {
  try {
    return statSync(join(folder, "events.jsonl")).size;
  } catch {
    return 0;
  }
}

/** Resolves with the end that the worker wrote, or undefined if it died without one. */
export async function attachWorker(folder: string, pid: number, options: AttachOptions): Promise<RunEnd | undefined> {
  const identity = processIdentity(pid);
  const tail = new EventTail(join(folder, "events.jsonl"), options.from);
  let hasAsked = false;
  for (;;) {
    // Liveness is looked at before the files: whatever a dead worker wrote is then there to be read.
    const isRunning = identity !== undefined && isAlive(identity);
    for (const event of tail.read()) options.onEvent(event);
    if (!isRunning) return readStatus(folder)?.process.pid === pid ? readStatus(folder)?.end : undefined;
    if (options.kill.aborted) signalProcess(identity, "SIGKILL");
    else if (options.stop.aborted && !hasAsked) {
      signalProcess(identity, "SIGTERM");
      hasAsked = true;
    }
    await sleep(POLL_MS);
  }
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

/** Reads complete lines as a file grows. */
export class EventTail {
  readonly #path: string;
  #offset: number;
  #rest = Buffer.alloc(0);
  constructor(path: string, offset: number) {
    this.#path = path;
    this.#offset = offset;
  }

  read(): readonly RunEvent[] {
    let fd: number;
    try {
      // Usually there is nothing new, and this is asked ten times a second for as long as a run takes.
      if (statSync(this.#path).size <= this.#offset) return [];
      fd = openSync(this.#path, "r");
    } catch {
      return [];
    }
    const events: RunEvent[] = [];
    try {
      const chunk = Buffer.alloc(1 << 16);
      for (;;) {
        const count = readSync(fd, chunk, 0, chunk.length, this.#offset);
        if (count === 0) break;
        this.#offset += count;
        this.#rest = Buffer.concat([this.#rest, chunk.subarray(0, count)]);
      }
    } finally {
      closeSync(fd);
    }
    for (let end = this.#rest.indexOf(10); end >= 0; end = this.#rest.indexOf(10)) {
      const line = this.#rest.toString("utf8", 0, end);
      this.#rest = this.#rest.subarray(end + 1);
      try {
        const value: unknown = JSON.parse(line);
        if (!isHeader(value)) events.push(value as RunEvent);
      } catch {
        // A torn line that the worker's restart cut off; what it said comes again.
      }
    }
    return events;
  }
}
