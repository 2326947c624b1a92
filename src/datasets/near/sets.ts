/** Conversations as what they are compared by: one after another, the number of shingles, the bands' hashes, the shingles. */
import type { Message } from "../../tokens/conversation.ts";
import type { RowsFile } from "../rowsfile.ts";
import { type Banding, bandingFor, bandsOf } from "./bands.ts";
import { KnownConversations } from "./known.ts";
import { shinglesOf } from "./shingles.ts";

const NEWLINE = 10;

/** The sets of rows, given as lines of JSON with their newlines. */
export function setsOf(rows: Buffer, threshold: number): Uint32Array<ArrayBuffer> {
  const banding = bandingFor(threshold);
  const pieces: Uint32Array[] = [];
  for (let start = 0; start < rows.length; ) {
    const end = rows.indexOf(NEWLINE, start);
    const { messages } = JSON.parse(rows.toString("utf8", start, end)) as { messages: readonly Message[] };
    pieces.push(setOf(messages, banding));
    start = end + 1;
  }
  const all = new Uint32Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

function setOf(messages: readonly Message[], banding: Banding): Uint32Array {
  const shingles = shinglesOf(messages);
  const set = new Uint32Array(1 + banding.bands + shingles.length);
  set[0] = shingles.length;
  bandsOf(shingles, banding, set, 1);
  set.set(shingles, 1 + banding.bands);
  return set;
}

/** Goes through the sets in a file, which are those of rows in their order. */
export class SetReader {
  readonly #file: RowsFile;
  readonly #bands: number;
  readonly #known: KnownConversations;
  #position = 0;
  #window = Buffer.alloc(0);
  #windowStart = 0;

  constructor(file: RowsFile, threshold: number) {
    this.#file = file;
    this.#bands = bandingFor(threshold).bands;
    this.#known = new KnownConversations(threshold, (position, length) => file.read(position, length));
  }

  /** Passes over the next row. */
  skip(): void {
    this.#position += 4 * (1 + this.#bands + this.#size());
  }

  /** Whether the next row is like none that was new before. */
  isNew(): boolean {
    const size = this.#size();
    const words = this.#words(this.#position, 1 + this.#bands + size);
    const place = this.#position + 4 * (1 + this.#bands);
    this.#position += 4 * words.length;
    return this.#known.add(words.subarray(1, 1 + this.#bands), words.subarray(1 + this.#bands), place);
  }

  #size(): number {
    return this.#words(this.#position, 1)[0] as number;
  }

  /** Read ahead, since all of it is read in order. */
  #words(position: number, count: number): Uint32Array {
    const length = 4 * count;
    if (position + length > this.#windowStart + this.#window.length) {
      this.#windowStart = position;
      this.#window = this.#file.read(position, Math.max(length, Math.min(AHEAD_BYTES, this.#file.size - position)));
    }
    const { buffer, byteOffset } = this.#window;
    return new Uint32Array(buffer, byteOffset + position - this.#windowStart, count);
  }
}

const AHEAD_BYTES = 1 << 20;
