/** A block of lines as work for a thread: what goes in, what comes back, and the doing of it. All of it plain data. */
import type { Block } from "./blocks.ts";
import type { Half } from "./format.ts";
import { KeyList, type RowKeys } from "./keys.ts";
import type { LineReader, RowSink } from "./reader.ts";
import { RowBuffer } from "./rowbuffer.ts";
import type { SessionEvent } from "./session.ts";
import { BlockTally } from "./tally.ts";

const NEWLINE = 10;

/** A half and its line, from the block's first. */
export interface PlacedHalf {
  readonly half: Half;
  readonly line: number;
}

/** What a line says of a session, and that line, from the block's first. */
export interface PlacedEvent {
  readonly event: SessionEvent;
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
  /** By row, what near duplicates are told by (near/sets.ts); only where they are left out. */
  readonly sets: Uint32Array<ArrayBuffer> | undefined;
  readonly halves: readonly PlacedHalf[];
  readonly events: readonly PlacedEvent[];
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
  const read: ReadingStep = (tally, sink) => reader.block(block, tally, sink, from);
  if (reader.rows) return collect(reader, read, mostRows, reader.rows, spare);
  return collect(reader, read, mostRows, spare ? RowBuffer.over(spare) : new RowBuffer(block.bytes.length));
}

type ReadingStep = (tally: BlockTally, sink: RowSink) => { readonly lines: number; readonly end: number };

/** Runs a reading step and gathers what it gave. `out` is where rows are written to, `spare` what they may be taken from it in. */
export function collect(
  reader: LineReader,
  step: ReadingStep,
  mostRows = Number.POSITIVE_INFINITY,
  out = new RowBuffer(),
  spare?: ArrayBuffer,
): BlockResult {
  const tally = new BlockTally(reader.mostPlaces);
  const rowLines: number[] = [];
  const [wholes, beginnings] = [new KeyList(), new KeyList()];
  const halves: PlacedHalf[] = [];
  const events: PlacedEvent[] = [];
  // A block that failed before may have left something.
  out.length = 0;
  const { lines, end } = step(tally, {
    wholes,
    beginnings,
    written: (line) => rowLines.push(line),
    isFull: () => rowLines.length >= mostRows,
    row: (line, row) => {
      out.text(row.text);
      out.byte(NEWLINE);
      rowLines.push(line);
      if (!row.keys) return;
      wholes.add(row.keys.whole);
      for (const key of row.keys.beginnings) beginnings.add(key);
    },
    half: (line, half) => halves.push({ half, line }),
    event: (line, event) => events.push({ event, line }),
  });
  const keys = wholes.length > 0 ? { wholes: wholes.take(), beginnings: beginnings.take() } : undefined;
  const rowCount = rowLines.length;
  const rows = out.take(spare);
  return {
    rows,
    rowCount,
    rowLines: new Uint32Array(rowLines),
    keys,
    sets: reader.setsOf(rows),
    halves,
    events,
    lines,
    end,
    tally,
  };
}
