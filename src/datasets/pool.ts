/** Threads that read blocks, started when there is enough to read. Results come back in the order of the blocks. */
import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import { entryPath } from "../entry.ts";
import { BLOCK_BYTES, type Block } from "./blocks.ts";
import type { ReadPlan } from "./options.ts";
import { SurvivedError } from "./redact.ts";
import { BlockTally } from "./tally.ts";
import type { BlockResult } from "./work.ts";
import type { WorkReply, WorkRequest } from "./worker.ts";

/** Beyond this, cutting and writing is what takes the time. */
const MOST_THREADS = 8;
/** Heap of a thread: a block, what it parses to, and the rows. */
const YOUNG_MB = 8;

/** What a block takes at most, unless a line is longer. */
const USUAL_BYTES = 2 * BLOCK_BYTES;
/** Pieces of free memory of each kind that are kept. */
const MOST_FREE = 8;

interface Waiting {
  readonly resolve: (result: BlockResult) => void;
  readonly reject: (error: unknown) => void;
}

export class ReaderPool {
  readonly #workers: Worker[];
  readonly #waiting = new Map<number, Waiting>();
  readonly #plans = new Map<ReadPlan, number>();
  /** Memory that was used and is free again, of blocks and of rows: less to allocate, and to collect. */
  readonly #freeBlocks: ArrayBuffer[] = [];
  readonly #freeRows: ArrayBuffer[] = [];
  #next = 0;

  constructor(threads = Math.min(MOST_THREADS, availableParallelism())) {
    this.#workers = Array.from({ length: threads }, () => this.#start());
  }

  get threads(): number {
    return this.#workers.length;
  }

  #start(): Worker {
    const worker = new Worker(entryPath("import-worker"), { resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MB } });
    worker.on("message", (reply: WorkReply) => this.#settle(reply));
    worker.on("error", (error) => this.#fail(error));
    return worker;
  }

  /** Memory for a block. */
  readonly allocate = (bytes: number): Buffer => {
    const free = this.#freeBlocks.pop();
    return free && free.byteLength >= bytes ? Buffer.from(free) : Buffer.allocUnsafeSlow(Math.max(bytes, USUAL_BYTES));
  };

  /** Takes back the memory of rows that nobody looks at any more. */
  release({ buffer }: Buffer): void {
    if (buffer.byteLength >= BLOCK_BYTES && this.#freeRows.length < MOST_FREE)
      this.#freeRows.push(buffer as ArrayBuffer);
  }

  /** Reads a block on the next thread in turn. The block's memory is given away. */
  read(plan: ReadPlan, { bytes, overlong }: Block): Promise<BlockResult> {
    const id = this.#next;
    this.#next += 1;
    const planId = this.#plans.get(plan) ?? this.#plans.size;
    this.#plans.set(plan, planId);
    const result = new Promise<BlockResult>((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
    // The failure is seen when the result is taken; without this it would count as unhandled until then.
    result.catch(() => {});
    const spare = this.#freeRows.pop();
    const request: WorkRequest = { id, planId, plan, bytes, overlong, spare };
    const given = [...(bytes.length > 0 ? [bytes.buffer as ArrayBuffer] : []), ...(spare ? [spare] : [])];
    this.#workers[id % this.#workers.length]?.postMessage(request, given);
    return result;
  }

  #settle(reply: WorkReply): void {
    const waiting = this.#waiting.get(reply.id);
    this.#waiting.delete(reply.id);
    if ("result" in reply) {
      const { rows, tally, ...rest } = reply.result;
      if (reply.bytes.length > 0 && this.#freeBlocks.length < MOST_FREE)
        this.#freeBlocks.push(reply.bytes.buffer as ArrayBuffer);
      const lines = Buffer.from(rows.buffer, rows.byteOffset, rows.byteLength);
      waiting?.resolve({ ...rest, rows: lines, tally: Object.assign(new BlockTally(), tally) });
    } else if ("survived" in reply) {
      waiting?.reject(Object.assign(new SurvivedError(reply.survived), { place: reply.place }));
    } else waiting?.reject(reply.error);
  }

  #fail(error: unknown): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}
