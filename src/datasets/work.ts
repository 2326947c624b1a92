/** A block of lines as work for a thread: what goes in, what comes back, and the doing of it. All of it plain data. */
import type { Block } from "./blocks.ts";
import type { Half } from "./format.ts";
import type { ConversationKeys, RowKeys } from "./keys.ts";
import type { LineReader, RowSink } from "./reader.ts";
import { RowBuffer } from "./rowbuffer.ts";
import { BlockTally } from "./tally.ts";

/** A half and its line, from the block's first. */
export interface PlacedHalf {
  readonly half: Half;
  readonly line: number;
}

export interface BlockResult {
  /** Rows as lines with their newlines. */
  readonly rows: Buffer;
  readonly rowCount: number;
  /** By row: its line, from the block's first. */
  readonly rowLines: Uint32Array<ArrayBuffer>;
  /** Where rows are compared or sampled. */
  readonly keys: RowKeys | undefined;
  readonly halves: readonly PlacedHalf[];
  /** Lines that the block stands for. */
  readonly lines: number;
  /** Byte of the block after the last line read. */
  readonly end: number;
  readonly tally: BlockTally;
}

export interface ReadOptions {
  /** The byte of the block to begin at. */
  readonly from?: number;
  readonly mostRows?: number;
  /** Memory that the rows may use. */
  readonly spare?: ArrayBuffer | undefined;
}

/** Reads a block until it ends or enough rows came out. */
export function readBlock(
  reader: LineReader,
  block: Block,
  { from = 0, mostRows = Number.POSITIVE_INFINITY, spare }: ReadOptions = {},
): BlockResult {
  const out = spare ? RowBuffer.over(spare) : new RowBuffer(block.bytes.length);
  return collect(reader, (tally, sink) => reader.block(block, tally, sink, from), mostRows, out);
}

/** Runs a reading step and gathers what it gave. */
export function collect(
  { mostPlaces }: LineReader,
  step: (tally: BlockTally, sink: RowSink) => { readonly lines: number; readonly end: number },
  mostRows = Number.POSITIVE_INFINITY,
  out = new RowBuffer(),
): BlockResult {
  const tally = new BlockTally(mostPlaces);
  const rowLines: number[] = [];
  const wholes: bigint[] = [];
  const beginnings: bigint[] = [];
  const halves: PlacedHalf[] = [];
  const written = (line: number, found: ConversationKeys | undefined): void => {
    rowLines.push(line);
    if (!found) return;
    wholes.push(found.whole);
    for (const key of found.beginnings) beginnings.push(key);
  };
  const { lines, end } = step(tally, {
    out,
    written,
    isFull: () => rowLines.length >= mostRows,
    row: (line, row) => {
      out.text(row.text);
      out.ascii("\n");
      written(line, row.keys);
    },
    half: (line, half) => halves.push({ half, line }),
  });
  const keys =
    wholes.length > 0 ? { wholes: new BigUint64Array(wholes), beginnings: new BigUint64Array(beginnings) } : undefined;
  const rowCount = rowLines.length;
  return { rows: out.take(), rowCount, rowLines: new Uint32Array(rowLines), keys, halves, lines, end, tally };
}
