/**
 * The rows of a run: which can be trained on, how long they are, which are held out. One pass over the dataset at first
 * start builds an index, kept in the run's folder; batches then read their rows by offset and render them when they
 * are needed, so that memory does not grow with the dataset.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileLines, LineFile } from "../datasets/linefile.ts";
import type { Row } from "../datasets/row.ts";
import { type Diagnostic, diagnostic, fail, messageOf, RlcliError } from "../diagnostic.ts";
import { type Digest, digestBytes, digestJson } from "../digest.ts";
import { writeFileWhole } from "../files.ts";
import type { SupervisedSettings } from "../run-record.ts";
import type { TokenDatum } from "../tokens/conversation.ts";
import type { Renderer, Rendering } from "../tokens/renderer.ts";

/** Raised whenever equal rows and settings would give another index. */
const INDEX_VERSION = 1;
/** Rows between two words of progress. */
const PROGRESS_ROWS = 10_000;

/** One entry for each row that trains something, in file order. */
interface RowIndex {
  readonly key: Digest;
  /** Byte at which the row's line starts, and its length without the newline. */
  readonly offsets: readonly number[];
  readonly lengths: readonly number[];
  /** Input tokens of all the row's datums. */
  readonly tokens: readonly number[];
  /** Indexes of the rows held out, ascending. */
  readonly heldOut: readonly number[];
  readonly counts: RowCounts;
}

interface RowCounts {
  readonly rows: number;
  readonly untrainable: number;
  readonly truncated: number;
  readonly inexactTurns: number;
  readonly refused: number;
  /** The template's words about the first row it refused, with the row's number. */
  readonly refusal?: string;
}

export interface RowStoreInput {
  /** rows.jsonl of the dataset. */
  readonly path: string;
  readonly datasetDigest: Digest;
  readonly textDigest: Digest;
  readonly settings: SupervisedSettings;
  readonly renderer: Renderer;
  /** Where the index is kept. */
  readonly folder: string;
  readonly signal?: AbortSignal;
  /** Told now and then how many rows have been read. */
  readonly onProgress?: (rows: number) => void;
}

/** Rows by number: positions in the index. */
export class RowStore {
  readonly #input: RowStoreInput;
  readonly #index: RowIndex;
  readonly #file: LineFile;
  /** Numbers of the rows to train on, ascending. */
  readonly training: readonly number[];

  private constructor(input: RowStoreInput, index: RowIndex) {
    this.#input = input;
    this.#index = index;
    const heldOut = new Set(index.heldOut);
    this.training = index.tokens.flatMap((_, i) => (heldOut.has(i) ? [] : [i]));
    this.#file = new LineFile(input.path);
  }

  /** Builds or loads the index. Fails with RL8001 (nothing to train on) or RL8002 (the rows cannot be read). */
  static async open(input: RowStoreInput): Promise<RowStore> {
    const path = join(input.folder, "index.json");
    const { train_on, max_length, template_kwargs, test_size } = input.settings;
    const key = digestJson({
      version: INDEX_VERSION,
      dataset: input.datasetDigest,
      text: input.textDigest,
      settings: { train_on, max_length, template_kwargs, test_size },
    });
    const known = readIndex(path, key);
    const index = known ?? (await buildIndex(input, key));
    if (!known) writeFileWhole(path, JSON.stringify(index));
    const store = new RowStore(input, index);
    if (store.training.length === 0) fail("RL8001", nothingToTrainOn(index, test_size));
    return store;
  }

  get heldOut(): readonly number[] {
    return this.#index.heldOut;
  }

  /** Input tokens of a row. */
  tokensOf(row: number): number {
    return this.#index.tokens[row] as number;
  }

  /** The row's datums, rendered now. */
  read(row: number): readonly TokenDatum[] {
    try {
      const bytes = this.#file.read(this.#index.offsets[row] as number, this.#index.lengths[row] as number);
      return renderRow(JSON.parse(bytes.toString()) as Row, this.#input).datums;
    } catch (error) {
      return fail("RL8002", `${this.#input.path} changed while it was trained on: ${messageOf(error)}.`);
    }
  }

  /** What a user should know about rows that are not, or not wholly, trained on. */
  warnings(): Diagnostic[] {
    const { rows, untrainable, truncated, inexactTurns, refused, refusal } = this.#index.counts;
    const said: string[] = [];
    if (refused > 0) said.push(`the chat template refuses ${refused}, the first with: ${refusal}`);
    if (untrainable > 0) said.push(`${untrainable} train no token (no assistant turn, weight 0, or cut off)`);
    if (truncated > 0) said.push(`${truncated} are cut at max_length ${this.#input.settings.max_length}`);
    if (inexactTurns > 0) said.push(`${inexactTurns} turns contradict the prompt that asks for them`);
    return said.length > 0 ? [diagnostic("RL8003", `Of ${rows} rows: ${said.join("; ")}.`)] : [];
  }

  close(): void {
    this.#file.close();
  }
}

function renderRow(row: Row, { renderer, settings }: RowStoreInput) {
  const { train_on, max_length, template_kwargs } = settings;
  const rendering = renderer.render(row, { train_on, max_length, template_kwargs });
  return row.weight === undefined || row.weight === 1 ? rendering : weighed(rendering, row.weight);
}

/** The rendering with its loss weights scaled by the row's own. At 0 nothing is left to train. */
function weighed(rendering: Rendering, weight: number): Rendering {
  const datums = rendering.datums.map((datum) => ({
    ...datum,
    weights: datum.weights.map((w) => w * weight),
    factor: weight,
  }));
  return { ...rendering, datums: weight === 0 ? [] : datums };
}

function readIndex(path: string, key: Digest): RowIndex | undefined {
  try {
    const index = JSON.parse(readFileSync(path, "utf8")) as RowIndex;
    return index.key === key ? index : undefined;
  } catch {
    // Missing, or cut off by a crash of an earlier version: it is built again.
    return undefined;
  }
}

async function buildIndex(input: RowStoreInput, key: Digest): Promise<RowIndex> {
  const offsets: number[] = [];
  const lengths: number[] = [];
  const tokens: number[] = [];
  const digests: string[] = [];
  const counts = { rows: 0, untrainable: 0, truncated: 0, inexactTurns: 0, refused: 0, refusal: "" };
  let offset = 0;
  for await (const { line, bytes } of linesOf(input)) {
    input.signal?.throwIfAborted();
    counts.rows += 1;
    if (counts.rows % PROGRESS_ROWS === 0) input.onProgress?.(counts.rows);
    const rendering = tryRender(input, line, bytes);
    if (typeof rendering === "string") {
      counts.refusal ||= rendering;
      counts.refused += 1;
    } else {
      counts.inexactTurns += rendering.inexactTurns;
      if (rendering.truncated > 0) counts.truncated += 1;
      if (rendering.datums.length === 0) counts.untrainable += 1;
      else {
        offsets.push(offset);
        lengths.push(bytes.length);
        tokens.push(rendering.datums.reduce((sum, d) => sum + d.tokens.length - 1, 0));
        if (input.settings.test_size > 0) digests.push(digestBytes(bytes));
      }
    }
    offset += bytes.length + 1;
  }
  const { refusal, ...rest } = counts;
  const heldOut = chooseHeldOut(digests, input.settings.test_size);
  return { key, offsets, lengths, tokens, heldOut, counts: refusal ? { ...rest, refusal } : rest };
}

/** A refusal in words, or the rendering. */
function tryRender(input: RowStoreInput, line: number, bytes: Buffer) {
  let row: Row;
  try {
    row = JSON.parse(bytes.toString()) as Row;
  } catch (error) {
    return fail("RL8002", `${input.path}:${line} is not a row: ${messageOf(error)}. Import the dataset again.`);
  }
  try {
    return renderRow(row, input);
  } catch (error) {
    if (error instanceof RlcliError) return `${error.diagnostics[0]?.detail ?? ""} (row ${line})`;
    throw error;
  }
}

async function* linesOf({ path }: RowStoreInput) {
  try {
    yield* fileLines(path);
  } catch (error) {
    if (!(error as NodeJS.ErrnoException).syscall) throw error;
    fail("RL8002", `The rows to train on cannot be read: ${messageOf(error)}.`, { cause: error });
  }
}

/** The rows with the smallest content digests: the same ones wherever they stand in the file. */
function chooseHeldOut(digests: readonly string[], count: number): number[] {
  const order = digests.map((digest, i) => ({ digest, i }));
  order.sort((a, b) => (a.digest < b.digest ? -1 : a.digest > b.digest ? 1 : a.i - b.i));
  return order
    .slice(0, count)
    .map(({ i }) => i)
    .sort((a, b) => a - b);
}

function nothingToTrainOn({ counts, tokens }: RowIndex, testSize: number): string {
  if (counts.rows === 0) return "The dataset has no rows.";
  if (tokens.length > 0) {
    return `All ${tokens.length} usable rows are held out by test_size ${testSize}; none is left to train on. Lower test_size.`;
  }
  const refusal = counts.refusal ? ` The chat template refuses ${counts.refused}: ${counts.refusal}` : "";
  return `None of the ${counts.rows} rows trains a token: no assistant turn is left under train_on and max_length.${refusal}`;
}
