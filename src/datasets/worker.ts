/** A thread that reads blocks of lines. The main thread cuts, orders and writes. */
import { parentPort } from "node:worker_threads";
import type { ReadPlan } from "./options.ts";
import { LineReader } from "./reader.ts";
import { SurvivedError } from "./redact.ts";
import type { BlockTally } from "./tally.ts";
import { type BlockResult, readBlock } from "./work.ts";

export interface WorkRequest {
  readonly id: number;
  readonly planId: number;
  readonly plan: ReadPlan;
  readonly bytes: Uint8Array;
  readonly overlong: 0 | 1;
  /** Memory for the rows. */
  readonly spare: ArrayBuffer | undefined;
}

export type WorkReply =
  | { readonly id: number; readonly result: WireResult; readonly bytes: Uint8Array }
  | { readonly id: number; readonly survived: readonly string[]; readonly place: SurvivedError["place"] }
  | { readonly id: number; readonly error: unknown };

/** As it crosses threads: methods are lost on the way. */
export type WireResult = Omit<BlockResult, "tally" | "rows"> & {
  readonly rows: Uint8Array;
  readonly tally: Omit<BlockTally, "reject">;
};

const readers = new Map<number, Promise<LineReader>>();

function readerOf({ planId, plan }: WorkRequest): Promise<LineReader> {
  const known = readers.get(planId) ?? LineReader.open(plan);
  readers.set(planId, known);
  return known;
}

async function answer(request: WorkRequest): Promise<WorkReply> {
  const { id, bytes, overlong, spare } = request;
  try {
    const reader = await readerOf(request);
    const block = { bytes: Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), overlong };
    const { tally, ...result } = readBlock(reader, block, { spare });
    return { id, result: { ...result, tally: { ...tally } }, bytes };
  } catch (error) {
    if (error instanceof SurvivedError) return { id, survived: error.types, place: error.place };
    return { id, error };
  }
}

/** What changes hands instead of being copied; the block's memory goes back. */
function memoryOf({ rows, rowLines, keys, sets }: WireResult, bytes: Uint8Array): ArrayBuffer[] {
  const all = [rows.buffer as ArrayBuffer, rowLines.buffer, ...(bytes.length > 0 ? [bytes.buffer as ArrayBuffer] : [])];
  if (sets) all.push(sets.buffer);
  return keys ? [...all, keys.wholes.buffer, keys.beginnings.buffer] : all;
}

parentPort?.on("message", (request: WorkRequest) => {
  void answer(request).then((reply) => {
    parentPort?.postMessage(reply, "result" in reply ? memoryOf(reply.result, reply.bytes) : []);
  });
});
