/**
 * The stream at the heart of every import: sources in, canonical rows and a tally of everything left out. Bytes are cut
 * into blocks of whole lines, read here or by threads, and given out in the order of the sources.
 */
import { setImmediate } from "node:timers/promises";
import { fail } from "../diagnostic.ts";
import { BLOCK_BYTES, type Block, lineBlocks } from "./blocks.ts";
import { type Chunks, decoded, resumed, type SourceFault } from "./decode.ts";
import type { Format } from "./format.ts";
import { HalfStore, type Pair } from "./halves.ts";
import { type Key, KeySet } from "./keys.ts";
import { BlockMemory } from "./memory.ts";
import { DEFAULT_LINE_BYTES, type ImportOptions, type ReadPlan } from "./options.ts";
import type { PlainFile } from "./plainfile.ts";
import { ReaderPool } from "./pool.ts";
import { LineReader } from "./reader.ts";
import { SurvivedError } from "./redact.ts";
import { defaultDedupe, detectFormat, FORMATS } from "./registry.ts";
import { damaged, skipped } from "./row.ts";
import { RowsFile } from "./rowsfile.ts";
import { Spool, type SpooledRows } from "./spool.ts";
import { damagedDiagnostic, type Tally } from "./tally.ts";
import { type Layout, layoutOf, ValueSplitter } from "./values.ts";
import { type BlockResult, collect, type PlacedEvent, readBlock } from "./work.ts";

export type { ImportOptions } from "./options.ts";

/** Something to read rows from. */
export interface LineSource {
  /** As the user named it. */
  readonly name: string;
  readonly bytes: AsyncIterable<Uint8Array>;
  /** The same bytes from their beginning, where they can be had again. */
  readonly reopen?: () => AsyncIterable<Uint8Array>;
  /** The same bytes as an open file to be closed, if lines of UTF-8 stand in it as they are. `bytes` is then not looked at. */
  readonly openPlain?: () => PlainFile | undefined;
}

export interface ConvertRequest {
  /** Undefined means `auto`: each source is the format that its first recognisable line is. */
  readonly format: Format | undefined;
  readonly options: ImportOptions;
  /** Rows of our own form, taken with all their fields. */
  readonly isVerbatim?: boolean;
  /** Model folder that `max_tokens` counts with. */
  readonly tokenizerFolder?: string | undefined;
  /** Damaged lines that are borne; one more is RL6014. Any number where absent. */
  readonly maxErrors?: number;
  /** The tally is told of every line left out, not only of the first few for each reason. */
  readonly reportsAll?: boolean;
  /** Threads for large sources beside this one; 0 reads everything here. By default one less than there are processors. */
  readonly threads?: number;
}

/** Values that `auto` looks at in a source before it gives up. */
const LOOK_AHEAD = 200;
/** A source's head: what its layout and format are told by. */
const HEAD_BYTES = 1 << 18;
/** Blocks read here before threads are worth their start. */
const BLOCKS_BEFORE_THREADS = 4;
/** A file for which threads start at once. */
const LARGE_BYTES = 16 * BLOCK_BYTES;
/** Blocks whose results may wait for an earlier one. */
const MOST_WAITING_BYTES = 1 << 23;
/** Values between two results, where values do not stand on lines. */
const VALUES_AT_ONCE = 64;

/**
 * Converts sources one after another, giving rows as lines of canonical JSON, each chunk whole lines with their newlines.
 * Everything that gave no row is in `tally`. Stops reading once `limit` rows are out. Fails with RL6012 where a known
 * pattern survived redaction, and with RL6014 where more lines are damaged than are borne.
 */
export async function* convert(
  sources: AsyncIterable<LineSource> | Iterable<LineSource>,
  request: ConvertRequest,
  tally: Tally,
): AsyncGenerator<Buffer> {
  yield* converted(sources, new Conversion(request, tally, undefined));
}

/**
 * The same into an open file, empty and to be read and written: rows that have to wait for others wait in their place. Gives
 * control back between blocks; whoever stops then leaves rows that were not chosen yet. What the disk refuses is thrown.
 */
export async function* convertInto(fd: number, ...[sources, request, tally]: Parameters<typeof convert>) {
  const file = RowsFile.within(fd);
  try {
    for await (const rows of converted(sources, new Conversion(request, tally, file))) {
      file.append(rows);
      yield;
    }
  } finally {
    await file.idle();
  }
}

async function* converted(sources: Parameters<typeof convert>[0], conversion: Conversion): AsyncGenerator<Buffer> {
  try {
    for await (const source of sources) {
      if (conversion.isFull) break;
      yield* conversion.source(source);
    }
    yield* conversion.end();
  } finally {
    await conversion.close();
  }
}

/** The same, a row at a time, without the newline. */
export async function* convertRows(...given: Parameters<typeof convert>): AsyncGenerator<string> {
  for await (const chunk of convert(...given)) yield* chunk.toString().slice(0, -1).split("\n");
}

class Conversion {
  readonly #request: ConvertRequest;
  readonly #tally: Tally;
  readonly #plans = new Map<string | undefined, { plan: ReadPlan; reader: Promise<LineReader> }>();
  readonly #seen = new KeySet();
  readonly #halves = new HalfStore();
  readonly #memory = new BlockMemory();
  /** Where rows end up, if they are not only given out. */
  readonly #file: RowsFile | undefined;
  #spool: Spool | undefined;
  #pool: ReaderPool | undefined;
  #blocks = 0;
  #isLarge = false;

  constructor(request: ConvertRequest, tally: Tally, file: RowsFile | undefined) {
    this.#file = file;
    this.#request = request;
    this.#tally = tally;
  }

  get #left(): number {
    return this.#spool
      ? Number.POSITIVE_INFINITY
      : (this.#request.options.limit ?? Number.POSITIVE_INFINITY) - this.#tally.rows;
  }

  /** Whether nothing more can come out. */
  get isFull(): boolean {
    return this.#left <= 0;
  }

  async *source(source: LineSource): AsyncGenerator<Buffer> {
    const at = { line: 1 };
    const maxBytes = this.#request.options.max_line_bytes ?? DEFAULT_LINE_BYTES;
    const plain = source.openPlain?.();
    try {
      const head = plain?.head(HEAD_BYTES, maxBytes);
      if (plain && head && layoutOf(head) === "lines") {
        const { plan, reader } = await this.#recognised(source.name, head, "lines");
        const blocks = plain.blocks(maxBytes, this.#memory.allocate);
        this.#isLarge ||= plain.size > LARGE_BYTES;
        yield* this.#counted(this.#blockResults(blocks, plan, reader), { name: source.name, at, plan, reader });
      } else yield* this.#stream(source, at, maxBytes);
    } catch (error) {
      if (error instanceof SurvivedError) survived(source.name, at.line, error);
      throw error;
    } finally {
      plain?.close();
    }
  }

  async *#stream({ name, bytes, reopen }: LineSource, at: LineCount, maxBytes: number): AsyncGenerator<Buffer> {
    let fault: SourceFault | undefined;
    const onFault = (found: SourceFault): void => {
      fault = found;
    };
    const [head, chunks] = await headOf(decoded(bytes, onFault, reopen), maxBytes);
    const layout = layoutOf(head);
    const { plan, reader } = await this.#recognised(name, head, layout);
    const results =
      layout === "lines"
        ? this.#blockResults(lineBlocks(chunks, maxBytes, undefined, this.#memory.allocate), plan, reader)
        : this.#valueResults(new ValueSplitter(layout, maxBytes).split(chunks), reader);
    yield* this.#counted(results, { name, at, plan, reader });
    if (!fault) return;
    this.#tally.lines += 1;
    this.#tally.reject(name, damaged(fault.message), { line: at.line, column: 1 });
    this.#checkErrors();
  }

  async #recognised(name: string, head: Buffer, layout: Layout): Promise<{ plan: ReadPlan; reader: LineReader }> {
    const format = this.#request.format ?? (await recognise(head, layout));
    if (format) this.#tally.sawFormat(name, format.name);
    const { plan, reader } = this.#plan(format);
    // Once rows wait, all that follow wait too: they come out in their order.
    if (plan.dedupe === "prefix" || plan.dedupe === "near" || plan.options.sample !== undefined)
      this.#spool ??= new Spool(plan.options, undefined, this.#file?.rest());
    return { plan, reader: await reader };
  }

  async *#counted(
    results: AsyncIterable<BlockResult>,
    { name, at, plan, reader }: { name: string; at: LineCount; plan: ReadPlan; reader: LineReader },
  ): AsyncGenerator<Buffer> {
    const events: PlacedEvent[] = [];
    for await (const result of results) {
      this.#tally.add(name, at.line, result.tally);
      const origin = { file: name, lineBefore: at.line - 1, dedupe: plan.dedupe };
      for (const { event, line } of result.events) events.push({ event, line: origin.lineBefore + line });
      at.line += result.lines;
      yield* this.#taken(origin, result, reader);
      this.#checkErrors();
      if (this.isFull) return;
    }
    yield* this.#sessionRows({ file: name, lineBefore: 0, dedupe: plan.dedupe }, events, reader);
  }

  #plan(format: Format | undefined) {
    const { options, isVerbatim = false, tokenizerFolder, reportsAll = false } = this.#request;
    const known = this.#plans.get(format?.name);
    if (known) return known;
    const plan: ReadPlan = {
      format: format?.name,
      options,
      dedupe: isVerbatim ? "none" : (options.dedupe ?? defaultDedupe(format)),
      isVerbatim,
      reportsAll,
      ...(tokenizerFolder === undefined ? {} : { tokenizerFolder }),
    };
    const made = { plan, reader: LineReader.open(plan) };
    this.#plans.set(format?.name, made);
    return made;
  }

  /**
   * Blocks are read here at first, and where a limit may end it soon; else by threads, and here whenever those have enough
   * to do. Results come in the order of the blocks.
   */
  async *#blockResults(
    blocks: AsyncIterable<Block> | Iterable<Block>,
    plan: ReadPlan,
    reader: LineReader,
  ): AsyncGenerator<BlockResult> {
    const ahead: Ahead[] = [];
    for await (const block of blocks) {
      this.#blocks += 1;
      if (!this.#usesThreads()) yield* this.#here(reader, block);
      else {
        this.#pool ??= new ReaderPool(this.#memory, this.#request.threads);
        const { length } = block.bytes;
        const result = this.#pool.hasRoom ? this.#pool.read(plan, block) : this.#alone(reader, block);
        ahead.push(watchedResult(result, length));
      }
      // Threads answer, and signals arrive, between two blocks.
      await setImmediate();
      while (ahead[0] && (ahead[0].isDone || bytesOf(ahead) > MOST_WAITING_BYTES))
        yield await (ahead.shift() as Ahead).result;
      if (this.isFull) return;
    }
    for (const { result } of ahead) yield await result;
  }

  async #alone(reader: LineReader, block: Block): Promise<BlockResult> {
    const result = readBlock(reader, block, { spare: this.#memory.forRows() });
    this.#memory.releaseBlock(block.bytes);
    return result;
  }

  #usesThreads(): boolean {
    return (
      (this.#isLarge || this.#blocks > BLOCKS_BEFORE_THREADS) &&
      this.#request.threads !== 0 &&
      this.#left === Number.POSITIVE_INFINITY
    );
  }

  *#here(reader: LineReader, block: Block): Generator<BlockResult> {
    for (let from = 0; from < block.bytes.length || block.overlong; ) {
      const result = readBlock(reader, block, { from, mostRows: this.#left, spare: this.#memory.forRows() });
      yield result;
      if (this.isFull || block.overlong) return;
      from = result.end;
    }
    this.#memory.releaseBlock(block.bytes);
  }

  async *#valueResults(values: ReturnType<ValueSplitter["split"]>, reader: LineReader): AsyncGenerator<BlockResult> {
    const batch: Awaited<ReturnType<typeof values.next>>["value"][] = [];
    const size = Math.min(VALUES_AT_ONCE, this.#left);
    const flush = (): BlockResult => {
      const taken = batch.splice(0);
      // Values bring their own line numbers, so the block they make stands for no lines.
      return collect(reader, (tally, sink) => {
        for (const { bytes, line, column } of taken) {
          if (bytes) reader.bytes(bytes, { line, column }, false, tally, sink);
          else reader.tooLong({ line, column }, tally);
        }
        return { lines: 0, end: 0 };
      });
    };
    for await (const value of values) {
      batch.push(value);
      if (batch.length >= size) yield flush();
    }
    if (batch.length > 0) yield flush();
  }

  /** What of a result comes out now; halves that found each other are read here. */
  *#taken(origin: Origin, result: BlockResult, reader: LineReader): Generator<Buffer> {
    yield* this.#out(origin, result);
    const { file } = origin;
    for (const { half, line: lineInBlock } of result.halves) {
      const line = origin.lineBefore + lineInBlock;
      const pair = this.#halves.add(half, { file, line });
      if (pair === "repeated") this.#drop(`a second ${half.side} of a batch with the same custom_id`, file, line);
      else if (pair) yield* this.#out({ ...origin, lineBefore: line - 1 }, this.#joined(file, line, pair, reader));
    }
  }

  /** Rows of the conversations that a file's events make, each on the line that ends it. */
  *#sessionRows(origin: Origin, events: readonly PlacedEvent[], reader: LineReader): Generator<Buffer> {
    for (const conversation of reader.session?.conversations(events.map(({ event }) => event)) ?? []) {
      if (this.isFull) return;
      const { line } = events[conversation.last] as PlacedEvent;
      const result = collect(reader, (tally, sink) => {
        reader.value(conversation, 1, tally, sink, () => ({ line: 1, column: 1 }));
        return { lines: 0, end: 0 };
      });
      this.#tally.add(origin.file, line, result.tally);
      yield* this.#out({ ...origin, lineBefore: line - 1 }, result);
      this.#checkErrors();
    }
  }

  /** The row of a pair counts as one of the line that completed it. */
  #joined(file: string, line: number, pair: Pair, reader: LineReader): BlockResult {
    const value = { request: pair.request, response: pair.result };
    const result = collect(reader, (tally, sink) => {
      reader.value(value, 1, tally, sink, () => ({ line: 1, column: 1 }));
      return { lines: 0, end: 0 };
    });
    this.#tally.add(file, line, result.tally);
    return result;
  }

  readonly #drop = (reason: string, file: string, line: number): void =>
    this.#tally.reject(file, skipped(reason), { line, column: 1 });

  *#out(origin: Origin, result: BlockResult): Generator<Buffer> {
    if (result.rowCount === 0) return;
    const { rows, rowLines, keys, sets } = result;
    if (this.#spool) this.#spool.add({ ...origin, rows, rowLines, keys, sets });
    else if (origin.dedupe === "exact") yield* this.#first(origin, result);
    else yield* this.#limited(rows, result.rowCount);
    // Rows that were given out may still be looked at.
    if (this.#spool || this.#file) this.#memory.releaseRows(rows);
  }

  /** Rows that were not seen before. */
  *#first({ file, lineBefore }: Origin, { rows, rowLines, keys }: BlockResult): Generator<Buffer> {
    let start = 0;
    for (const [i, line] of rowLines.entries()) {
      const end = rows.indexOf(10, start) + 1;
      if (!this.#seen.add(keys?.wholes[i] as Key)) this.#drop("equal to an earlier row", file, lineBefore + line);
      else if (!this.isFull) yield* this.#limited(rows.subarray(start, end), 1);
      start = end;
    }
  }

  *#limited(rows: Buffer, count: number): Generator<Buffer> {
    const taken = Math.min(count, this.#left);
    let end = rows.length;
    if (taken < count) for (let i = 0, at = 0; i < taken; i += 1) end = at = rows.indexOf(10, at) + 1;
    this.#tally.rows += taken;
    if (taken > 0) yield rows.subarray(0, end);
  }

  /** What could only be told at the end. */
  async *end(): AsyncGenerator<Buffer> {
    if (!this.isFull) {
      for (const { side, place } of this.#halves.left()) {
        const reason = side === "request" ? "a batch request without its result" : "a batch result without its request";
        this.#drop(reason, place.file, place.line);
      }
    }
    if (!this.#spool) return;
    const left = (this.#request.options.limit ?? Number.POSITIVE_INFINITY) - this.#tally.rows;
    if (this.#file) {
      for (const count of this.#spool.settle(this.#drop, left)) {
        this.#tally.rows += count;
        await setImmediate();
        yield NOTHING;
      }
      return;
    }
    for (const { rows, count } of this.#spool.kept(this.#drop, left)) {
      this.#tally.rows += count;
      yield rows;
    }
  }

  #checkErrors(): void {
    const { maxErrors = Number.POSITIVE_INFINITY, format } = this.#request;
    if (this.#tally.damaged <= maxErrors) return;
    const worst = this.#tally.statistics().rejected.find((r) => r.kind === "damaged");
    if (!worst) return;
    const { detail, range } = damagedDiagnostic(
      worst,
      format?.expected ?? expectedShapes(Object.values(this.#tally.statistics().formats)),
      "error",
    );
    const borne =
      maxErrors === 0
        ? "No damaged line is allowed"
        : `More than ${maxErrors} ${maxErrors === 1 ? "line is" : "lines are"} damaged`;
    fail("RL6014", `${borne}. ${detail}`, { range });
  }

  async close(): Promise<void> {
    this.#spool?.close();
    this.#halves.close();
    await this.#pool?.close();
  }
}

/** The line that is read next, of a source. */
interface LineCount {
  line: number;
}

const NOTHING = Buffer.alloc(0);

/** A result to come. */
interface Ahead {
  readonly result: Promise<BlockResult>;
  /** Of the block. */
  readonly bytes: number;
  isDone: boolean;
}

function watchedResult(result: Promise<BlockResult>, bytes: number): Ahead {
  const ahead = { result, bytes, isDone: false };
  const done = (): void => {
    ahead.isDone = true;
  };
  // A failure is seen when the result is taken; without a handler it would count as unhandled until then.
  result.then(done, done);
  return ahead;
}

const bytesOf = (ahead: readonly Ahead[]): number => ahead.reduce((sum, { bytes }) => sum + bytes, 0);

/** Where rows come from, and whether they are compared. */
type Origin = Pick<SpooledRows, "file" | "lineBefore" | "dedupe">;

function survived(file: string, firstLine: number, error: SurvivedError): never {
  const { place } = error;
  const where = place ? `${file}:${firstLine - 1 + place.line}` : file;
  return fail(
    "RL6012",
    `${where}: ${error.types.join(" and ")} would be left in the row after redaction. Nothing more is imported; leave the line out with \`where\`, or tell us.`,
  );
}

/** The first bytes of a source, enough to hold a line where lines are not longer than allowed, and all of its chunks again. */
async function headOf(chunks: AsyncGenerator<Buffer>, maxBytes: number): Promise<[Buffer, Chunks]> {
  const seen: Buffer[] = [];
  let length = 0;
  for (let hasLine = false; length < HEAD_BYTES || (!hasLine && length < maxBytes); ) {
    const next = await chunks.next();
    if (next.done) break;
    seen.push(next.value);
    length += next.value.length;
    hasLine ||= next.value.includes(10);
  }
  return [Buffer.concat(seen), resumed(seen, chunks)];
}

/** The format of the first value that has one. */
async function recognise(head: Buffer, layout: Layout): Promise<Format | undefined> {
  const texts = layout === "lines" ? linesOf(head) : valuesOf(head, layout);
  for await (const text of texts) {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch {
      continue;
    }
    const format = detectFormat(value);
    if (format) return format;
  }
  return undefined;
}

function* linesOf(head: Buffer): Generator<string> {
  let start = 0;
  for (let count = 0; count < LOOK_AHEAD && start < head.length; count += 1) {
    const found = head.indexOf(10, start);
    const end = found < 0 ? head.length : found;
    yield head.toString("utf8", start, end);
    start = end + 1;
  }
}

async function* valuesOf(head: Buffer, layout: "values" | "array"): AsyncGenerator<string> {
  let count = 0;
  async function* once() {
    yield head;
  }
  for await (const { bytes } of new ValueSplitter(layout, head.length).split(once())) {
    if (bytes) yield bytes.toString();
    count += 1;
    if (count >= LOOK_AHEAD) return;
  }
}

/** The forms that a diagnostic shows: those of the formats that were found, or the usual ones and the names of the others. */
export function expectedShapes(found: readonly string[] = []): string {
  const isShown = (name: string): boolean => (found.length > 0 ? found : USUAL).includes(name);
  const shown = FORMATS.filter(({ name }) => isShown(name)).sort(
    (a, b) => USUAL.indexOf(a.name) - USUAL.indexOf(b.name),
  );
  const shapes = shown.map((f) => (shown.length === 1 ? f.expected : `${f.name}: ${f.expected}`));
  const others = FORMATS.filter(({ name }) => !isShown(name)).map(({ name }) => name);
  return [...shapes, ...(found.length > 0 ? [] : [`or as ${others.join(", ")} write it`])].join("; ");
}

/** All shapes would be a page. */
const USUAL: readonly string[] = ["messages", "openai", "anthropic"];
