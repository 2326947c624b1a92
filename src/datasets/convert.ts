/**
 * The stream at the heart of every import: sources in, canonical rows and a tally of everything left out. Bytes are cut
 * into blocks of whole lines, read here or by threads, and given out in the order of the sources.
 */
import { fail } from "../diagnostic.ts";
import { type Block, lineBlocks } from "./blocks.ts";
import { type Chunks, decoded, resumed, type SourceFault } from "./decode.ts";
import type { Format } from "./format.ts";
import { HalfStore, type Pair } from "./halves.ts";
import { type Key, KeySet } from "./keys.ts";
import { DEFAULT_LINE_BYTES, type ImportOptions, type ReadPlan } from "./options.ts";
import { ReaderPool } from "./pool.ts";
import { LineReader } from "./reader.ts";
import { SurvivedError } from "./redact.ts";
import { defaultDedupe, detectFormat, FORMATS } from "./registry.ts";
import { damaged, skipped } from "./row.ts";
import { Spool, type SpooledRows } from "./spool.ts";
import { damagedDiagnostic, type Tally } from "./tally.ts";
import { type Layout, layoutOf, ValueSplitter } from "./values.ts";
import { type BlockResult, collect, readBlock } from "./work.ts";

export type { ImportOptions } from "./options.ts";

/** Something to read rows from. */
export interface LineSource {
  /** As the user named it. */
  readonly name: string;
  readonly bytes: AsyncIterable<Uint8Array>;
  /** The same bytes from their beginning, where they can be had again. */
  readonly reopen?: () => AsyncIterable<Uint8Array>;
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
  /** Threads for large sources; 0 reads everything here. By default as many as there are processors. */
  readonly threads?: number;
}

/** Values that `auto` looks at in a source before it gives up. */
const LOOK_AHEAD = 200;
/** A source's head: what its layout and format are told by. */
const HEAD_BYTES = 1 << 18;
/** Blocks read here before threads are worth their start. */
const BLOCKS_BEFORE_THREADS = 4;
/** Blocks given to each thread ahead of what was taken from it. */
const BLOCKS_AHEAD = 2;
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
  const conversion = new Conversion(request, tally);
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
  #spool: Spool | undefined;
  #pool: ReaderPool | undefined;
  #blocks = 0;

  constructor(request: ConvertRequest, tally: Tally) {
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
    let fault: SourceFault | undefined;
    const onFault = (found: SourceFault): void => {
      fault = found;
    };
    const bytes = decoded(source.bytes, onFault, source.reopen);
    try {
      yield* this.#read(source.name, bytes, at);
    } catch (error) {
      if (error instanceof SurvivedError) survived(source.name, at.line, error);
      throw error;
    }
    if (!fault) return;
    this.#tally.lines += 1;
    this.#tally.reject(source.name, damaged(fault.message), { line: at.line, column: 1 });
    this.#checkErrors();
  }

  async *#read(name: string, bytes: AsyncGenerator<Buffer>, at: { line: number }): AsyncGenerator<Buffer> {
    const maxBytes = this.#request.options.max_line_bytes ?? DEFAULT_LINE_BYTES;
    const [head, chunks] = await headOf(bytes, maxBytes);
    const layout = layoutOf(head);
    const format = this.#request.format ?? (await recognise(head, layout));
    if (format) this.#tally.sawFormat(name, format.name);
    const { plan, reader } = this.#plan(format);
    // Once rows wait, all that follow wait too: they come out in their order.
    if (plan.dedupe === "prefix" || plan.options.sample !== undefined) this.#spool ??= new Spool(plan.options);
    const results =
      layout === "lines"
        ? this.#blockResults(lineBlocks(chunks, maxBytes, undefined, this.#allocate), plan, await reader)
        : this.#valueResults(new ValueSplitter(layout, maxBytes).split(chunks), await reader);
    for await (const result of results) {
      this.#tally.add(name, at.line, result.tally);
      const origin = { file: name, lineBefore: at.line - 1, dedupe: plan.dedupe };
      at.line += result.lines;
      yield* this.#taken(origin, result, await reader);
      this.#checkErrors();
      if (this.isFull) return;
    }
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

  /** Blocks are read here at first, and where a limit may end it soon; else by threads, a few ahead. */
  async *#blockResults(blocks: AsyncIterable<Block>, plan: ReadPlan, reader: LineReader): AsyncGenerator<BlockResult> {
    const ahead: Promise<BlockResult>[] = [];
    for await (const block of blocks) {
      this.#blocks += 1;
      if (!this.#usesThreads()) yield* this.#here(reader, block);
      else {
        this.#pool ??= new ReaderPool(this.#request.threads);
        ahead.push(this.#pool.read(plan, block));
        if (ahead.length >= this.#pool.threads * BLOCKS_AHEAD) yield await (ahead.shift() as Promise<BlockResult>);
      }
      if (this.isFull) return;
    }
    for (const result of ahead) yield await result;
  }

  readonly #allocate = (bytes: number): Buffer => this.#pool?.allocate(bytes) ?? Buffer.allocUnsafeSlow(bytes);

  #usesThreads(): boolean {
    return (
      this.#blocks > BLOCKS_BEFORE_THREADS && this.#request.threads !== 0 && this.#left === Number.POSITIVE_INFINITY
    );
  }

  *#here(reader: LineReader, block: Block): Generator<BlockResult> {
    for (let from = 0; from < block.bytes.length || block.overlong; ) {
      const result = readBlock(reader, block, { from, mostRows: this.#left });
      yield result;
      if (this.isFull || block.overlong) return;
      from = result.end;
    }
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
    const { rows, rowLines, keys } = result;
    if (this.#spool) {
      this.#spool.add({ ...origin, rows, rowLines, keys });
      this.#pool?.release(rows);
    } else if (origin.dedupe === "exact") yield* this.#first(origin, result);
    else yield* this.#limited(rows, result.rowCount);
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
  *end(): Generator<Buffer> {
    if (!this.isFull) {
      for (const { side, place } of this.#halves.left()) {
        const reason = side === "request" ? "a batch request without its result" : "a batch result without its request";
        this.#drop(reason, place.file, place.line);
      }
    }
    const left = (this.#request.options.limit ?? Number.POSITIVE_INFINITY) - this.#tally.rows;
    for (const { rows, count } of this.#spool?.kept(this.#drop, left) ?? []) {
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
    const borne = maxErrors === 0 ? "No damaged line is allowed" : `More than ${maxErrors} lines are damaged`;
    fail("RL6014", `${borne}. ${detail}`, { range });
  }

  async close(): Promise<void> {
    this.#spool?.close();
    this.#halves.close();
    await this.#pool?.close();
  }
}

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

/** The forms that a diagnostic shows: those of the formats that were found, or all where none was. */
export function expectedShapes(found: readonly string[] = []): string {
  const shown = FORMATS.filter((f) => found.length === 0 || found.includes(f.name));
  return shown.map((f) => (shown.length === 1 ? f.expected : `${f.name}: ${f.expected}`)).join("; ");
}
