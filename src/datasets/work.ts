/** A block of lines as work for a thread: what goes in, what comes back, and the doing of it. All of it plain data. */
import type { Block } from "./blocks.ts";
import type { Half } from "./format.ts";
import type { ConversationKeys } from "./keys.ts";
import type { LineReader, RowSink } from "./reader.ts";
import { RowBuffer } from "./rowbuffer.ts";
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
  return collect((tally, sink) => reader.block(block, tally, sink, from), mostRows, block.bytes.length);
}

/** Runs a reading step and gathers what it gave. `size`: bytes that the rows may take, a guess. */
export function collect(
  step: (tally: BlockTally, sink: RowSink) => { readonly lines: number; readonly end: number },
  mostRows = Number.POSITIVE_INFINITY,
  size?: number,
): BlockResult {
  const tally = new BlockTally();
  const out = new RowBuffer(size);
  const keys: ConversationKeys[] = [];
  const halves: Half[] = [];
  let rowCount = 0;
  const written = (found: ConversationKeys | undefined): void => {
    rowCount += 1;
    if (found) keys.push(found);
  };
  const { lines, end } = step(tally, {
    out,
    written,
    isFull: () => rowCount >= mostRows,
    row: (row) => {
      out.text(row.text);
      out.ascii("\n");
      written(row.keys);
    },
    half: (half) => halves.push(half),
  });
  return { rows: out.take(), rowCount, keys, halves, lines, end, tally };
}
