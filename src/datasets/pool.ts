/** Threads that read blocks, beside the main one. Results come as they are done; whoever asks keeps their order. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { entryPath } from "../entry.ts";
import type { Block } from "./blocks.ts";
import type { BlockMemory } from "./memory.ts";
import type { ReadPlan } from "./options.ts";
import { SurvivedError } from "./redact.ts";
import { BlockTally } from "./tally.ts";
import type { BlockResult } from "./work.ts";
import type { WorkReply, WorkRequest } from "./worker.ts";

/** Beyond this, cutting and writing is what takes the time. */
const MOST_THREADS = 8;
/** Heap of a thread: a block, what it parses to, and the rows. */
const YOUNG_MB = 8;
/** Blocks that wait for each thread while it reads another, so that it never waits for the main one. */
const BLOCKS_AHEAD = 2;

interface Waiting {
  readonly thread: number;
  readonly resolve: (result: BlockResult) => void;
  readonly reject: (error: unknown) => void;
}

export class ReaderPool {
  readonly #workers: readonly Worker[];
  /** By thread, how many blocks it has. */
  readonly #load: number[];
  readonly #waiting = new Map<number, Waiting>();
  readonly #plans = new Map<ReadPlan, number>();
  readonly #memory: BlockMemory;
  #next = 0;

  /** By default a thread for each processor that the main one leaves. */
  constructor(memory: BlockMemory, threads = Math.min(MOST_THREADS, availableParallelism() - 1)) {
    this.#memory = memory;
    this.#workers = Array.from({ length: threads }, () => this.#start());
    this.#load = this.#workers.map(() => 0);
  }

  #start(): Worker {
    const worker = new Worker(entryPath("import-worker"), { resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
    worker.on("message", (reply: WorkReply) => this.#settle(reply));
    worker.on("error", (error) => this.#fail(error));
    return worker;
  }

  /** Whether a thread would soon be without work. */
  get hasRoom(): boolean {
    return this.#load.some((load) => load <= BLOCKS_AHEAD);
  }

  /** Reads a block on the thread with the least to do. The block's memory is given away. */
  read(plan: ReadPlan, { bytes, overlong }: Block): Promise<BlockResult> {
    const id = this.#next;
    this.#next += 1;
    const planId = this.#plans.get(plan) ?? this.#plans.size;
    this.#plans.set(plan, planId);
    const thread = this.#load.indexOf(Math.min(...this.#load));
    this.#load[thread] = (this.#load[thread] as number) + 1;
    const result = new Promise<BlockResult>((resolve, reject) => this.#waiting.set(id, { thread, resolve, reject }));
    const spare = this.#memory.forRows();
    const request: WorkRequest = { id, planId, plan, bytes, overlong, spare };
    const given = [...(bytes.length > 0 ? [bytes.buffer as ArrayBuffer] : []), ...(spare ? [spare] : [])];
    this.#workers[thread]?.postMessage(request, given);
    return result;
  }

  #settle(reply: WorkReply): void {
    const waiting = this.#waiting.get(reply.id);
    if (!waiting) return;
    this.#waiting.delete(reply.id);
    this.#load[waiting.thread] = (this.#load[waiting.thread] as number) - 1;
    if ("result" in reply) {
      const { rows, tally, ...rest } = reply.result;
      this.#memory.releaseBlock(reply.bytes);
      const lines = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength);
      waiting.resolve({ ...rest, rows: lines, tally: Object.assign(new BlockTally(), tally) });
    } else if ("survived" in reply) {
      waiting.reject(Object.assign(new SurvivedError(reply.survived), { place: reply.place }));
    } else waiting.reject(reply.error);
  }

  #fail(error: unknown): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
