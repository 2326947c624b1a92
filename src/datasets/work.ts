/** A block of lines as work for a thread: what goes in, what comes back, and the doing of it. All of it plain data. */
import type { Block } from "./blocks.ts";
import type { Half } from "./format.ts";
import type { ConversationKeys } from "./keys.ts";
import type { LineReader, RowSink } from "./reader.ts";
import { BlockTally } from "./tally.ts";

export interface BlockResult {
  /** Rows as lines with their newlines. */
  readonly rows: Buffer;
  readonly rowCount: number;
  /** One for each row, where rows are compared or sampled. */
  readonly keys: readonly ConversationKeys[];
  readonly halves: readonly Half[];
  /** Lines that the block stands for. */
  readonly lines: number;
  /** Byte of the block after the last line read. */
  readonly end: number;
  readonly tally: BlockTally;
}

/** Reads a block from a byte on, until it ends or `mostRows` rows came out. */
export function readBlock(
  reader: LineReader,
  block: Block,
  from = 0,
  mostRows = Number.POSITIVE_INFINITY,
): BlockResult {
  return collect((tally, sink) => reader.block(block, tally, sink, from), mostRows);
}

/** Runs a reading step and gathers what it gave. */
export function collect(
  step: (tally: BlockTally, sink: RowSink) => { readonly lines: number; readonly end: number },
  mostRows = Number.POSITIVE_INFINITY,
): BlockResult {
  const tally = new BlockTally();
  const texts: string[] = [];
  const keys: ConversationKeys[] = [];
  const halves: Half[] = [];
  const { lines, end } = step(tally, {
    isFull: () => texts.length >= mostRows,
    row: (row) => {
      texts.push(row.text);
      if (row.keys) keys.push(row.keys);
    },
    half: (half) => halves.push(half),
  });
  const rows = texts.length > 0 ? Buffer.from(`${texts.join("\n")}\n`) : Buffer.alloc(0);
  return { rows, rowCount: texts.length, keys, halves, lines, end, tally };
}
