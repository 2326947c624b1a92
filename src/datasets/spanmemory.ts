/**
 * A block's bytes with their marks and, in the same memory, the rows that are made of them: spans go from one to the other,
 * and are hashed, without leaving the kernels.
 */
import type { Message } from "../tokens/conversation.ts";
import { extendedKey, type KeyList, kindOf } from "./keys.ts";
import { FIRST_BYTE, MarkedBytes, PAD } from "./marks.ts";
import { RowBuffer } from "./rowbuffer.ts";

/** Addresses before the bytes, after the tables: the key, then kinds, then pieces of text. */
const [KEY, KINDS, PIECES] = [64, 72, 128];
const [KIND_BYTES, PIECE_BYTES] = [8, 32];
const FIRST_ROOM = 1 << 16;

export class SpanMemory extends MarkedBytes {
  readonly rows: RowBuffer;
  readonly #pieceLengths: readonly number[];
  #room = FIRST_ROOM;
  #key = new Uint32Array(2);

  /** `kinds`: seeds of messages' hashes, at most seven. `pieces`: what stands between spans, at most twelve texts of 32 bytes. */
  constructor(pairs: Uint8Array | undefined, kinds: readonly bigint[], pieces: readonly string[]) {
    super(pairs);
    this.rows = new RowBuffer(0, (bytes) => {
      this.#room = bytes;
      this.grow(this.rest + bytes + PAD);
    });
    this.#pieceLengths = pieces.map((piece) => piece.length);
    const { buffer } = this.kernels.memory;
    new BigUint64Array(buffer, KINDS).set(kinds.map((kind) => BigInt.asUintN(64, kind)));
    for (const [i, piece] of pieces.entries()) Buffer.from(buffer, PIECES + i * PIECE_BYTES).write(piece, "latin1");
  }

  protected override grow(size: number): void {
    super.grow(Math.max(size, this.rest + this.#room + PAD));
  }

  protected override view(memory: ArrayBuffer): void {
    super.view(memory);
    this.rows.stand(Buffer.from(memory, this.rest, this.#room));
    this.#key = new Uint32Array(memory, KEY, 2);
  }

  /** Appends a piece, from its byte `skip` on. */
  piece(i: number, skip: 0 | 1 = 0): void {
    this.#append(PIECES + i * PIECE_BYTES + skip, (this.#pieceLengths[i] as number) - skip);
  }

  /** Appends bytes [start, end). */
  span(start: number, end: number): void {
    this.#append(FIRST_BYTE + start, end - start);
  }

  #append(address: number, length: number): void {
    const { rows } = this;
    rows.reserve(length);
    this.kernels.copy(this.rest + rows.length, address, length);
    rows.length += length;
  }

  /** Begins a key. */
  clearKey(): void {
    this.#key.fill(0);
  }

  /** Goes on with a message of a kind, whose content as canonical JSON is in bytes [start, end). */
  fold(kind: number, start: number, end: number): void {
    this.#fold(kind, FIRST_BYTE + start, end - start);
  }

  /** The same, of content in the rows. */
  foldRows(kind: number, start: number, end: number): void {
    this.#fold(kind, this.rest + start, end - start);
  }

  /** The same, of a text as JSON. */
  foldLiteral(kind: number, literal: string): void {
    const { rows } = this;
    const { length } = rows;
    rows.text(literal);
    this.foldRows(kind, length + 1, rows.length - 1);
    rows.length = length;
  }

  /** The same, of a message that has more than role and content. */
  foldMessage(message: Message): void {
    const [low, high] = this.#key;
    const before = (BigInt(high as number) << 32n) | BigInt(low as number);
    const key = extendedKey(before, kindOf(message), JSON.stringify(message.content) ?? "");
    this.#key[0] = Number(BigInt.asUintN(32, key));
    this.#key[1] = Number(BigInt.asUintN(32, key >> 32n));
  }

  #fold(kind: number, address: number, length: number): void {
    this.kernels.fold(KEY, KINDS + kind * KIND_BYTES, address, length);
  }

  /** Adds the key to a list. */
  keep(list: KeyList): void {
    list.addWords(this.#key[0] as number, this.#key[1] as number);
  }

  /** As `pointOf`. */
  keyPoint(): number {
    return ((this.#key[1] as number) * 2 ** 21 + ((this.#key[0] as number) >>> 11)) / 2 ** 53;
  }
}
