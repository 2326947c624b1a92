/**
 * Hashes by which conversations are compared, and a set of them that takes eight bytes a member. A conversation's key is
 * folded from its messages one after another, so that the keys of its beginnings come by the way.
 */
import type { Message } from "../tokens/conversation.ts";
import { MarkedBytes } from "./marks.ts";

/** XXH64: among a hundred million conversations, two differing ones meet with a chance of 3 in 10 000. */
export type Key = bigint;

/** Keys of the rows of a block, as a thread hands them over. */
export interface RowKeys {
  /** By row: of the whole conversation. */
  readonly wholes: BigUint64Array<ArrayBuffer>;
  /** Of every shorter conversation that begins one of the rows and ends with an answer. */
  readonly beginnings: BigUint64Array<ArrayBuffer>;
}

export interface ConversationKeys {
  readonly whole: Key;
  readonly beginnings: readonly Key[];
}

const scratch = new MarkedBytes();

/** XXH64 of a text. */
export function keyOf(text: string, seed: Key = 0n): Key {
  scratch.encode(text);
  return BigInt.asUintN(64, scratch.hash(0, scratch.length, seed));
}

/** What a message is besides its content, as the seed of its hash. */
export function kindOf({ content: _content, ...rest }: Message): Key {
  return keyOf(JSON.stringify(rest));
}

/** The key of a conversation that goes on with a message. `content`: what JSON.stringify gives for it. */
export function extendedKey(before: Key, kind: Key, content: string): Key {
  scratch.encode(content);
  return scratch.hash(1, scratch.length - 1, before ^ kind);
}

/** Keys of a conversation and of its beginnings. */
export function conversationKeys(messages: readonly Message[]): ConversationKeys {
  const beginnings: Key[] = [];
  let key: Key = 0n;
  for (const [i, message] of messages.entries()) {
    key = extendedKey(key, kindOf(message), JSON.stringify(message.content) ?? "");
    if (message.role === "assistant" && i < messages.length - 1) beginnings.push(key);
  }
  return { whole: key, beginnings };
}

/** Keys as they come, in one typed array of words: numbers are kept faster than bigints. */
export class KeyList {
  #words = new Uint32Array(256);
  #length = 0;

  get length(): number {
    return this.#length / 2;
  }

  add(key: Key): void {
    this.addWords(Number(BigInt.asUintN(32, key)), Number(BigInt.asUintN(32, key >> 32n)));
  }

  addWords(low: number, high: number): void {
    if (this.#length === this.#words.length) {
      const more = new Uint32Array(this.#words.length * 2);
      more.set(this.#words);
      this.#words = more;
    }
    this.#words[this.#length] = low;
    this.#words[this.#length + 1] = high;
    this.#length += 2;
  }

  /** All of them, in memory of their own. */
  take(): BigUint64Array<ArrayBuffer> {
    return new BigUint64Array(this.#words.slice(0, this.#length).buffer);
  }
}

/** A number in [0, 1) that depends on a conversation's beginning alone, up to its first question. */
export function splitPoint(messages: readonly Message[]): number {
  const question = messages.findIndex((m) => m.role === "user");
  return pointOf(conversationKeys(messages.slice(0, question < 0 ? 1 : question + 1)).whole);
}

/** A key as a number in [0, 1). */
const pointOf = (key: Key): number => Number(BigInt.asUintN(64, key) >> 11n) / 2 ** 53;

const SMALLEST = 1 << 12;

/**
 * Open addressing over one typed array of pairs of words, low and high: numbers are compared faster than bigints. Zero marks
 * an empty slot, so that key has a flag of its own.
 */
export class KeySet {
  #words: Uint32Array;
  #size = 0;
  #hasZero = false;

  /** `expected`: so many keys need no growing. */
  constructor(expected = 0) {
    this.#words = new Uint32Array(2 * Math.max(SMALLEST, 2 ** Math.ceil(Math.log2((expected * 4) / 3 + 2))));
  }

  /** Whether the key is new. */
  add(key: Key): boolean {
    return this.addWords(Number(BigInt.asUintN(32, key)), Number(key >> 32n));
  }

  has(key: Key): boolean {
    return this.hasWords(Number(BigInt.asUintN(32, key)), Number(key >> 32n));
  }

  addWords(low: number, high: number): boolean {
    if (low === 0 && high === 0) {
      const isNew = !this.#hasZero;
      this.#hasZero = true;
      return isNew;
    }
    const slot = find(this.#words, low, high);
    if (this.#words[slot] !== 0 || this.#words[slot + 1] !== 0) return false;
    this.#words[slot] = low;
    this.#words[slot + 1] = high;
    this.#size += 1;
    if (this.#size * 8 > this.#words.length * 3) this.#grow();
    return true;
  }

  hasWords(low: number, high: number): boolean {
    if (low === 0 && high === 0) return this.#hasZero;
    const slot = find(this.#words, low, high);
    return this.#words[slot] !== 0 || this.#words[slot + 1] !== 0;
  }

  #grow(): void {
    const words = new Uint32Array(this.#words.length * 2);
    for (let at = 0; at < this.#words.length; at += 2) {
      const [low, high] = [this.#words[at] as number, this.#words[at + 1] as number];
      if (low === 0 && high === 0) continue;
      const slot = find(words, low, high);
      words[slot] = low;
      words[slot + 1] = high;
    }
    this.#words = words;
  }
}

/** The key's place, or the empty one where it would be. */
function find(words: Uint32Array, low: number, high: number): number {
  const mask = words.length - 1;
  let slot = (low << 1) & mask;
  for (;;) {
    const [a, b] = [words[slot], words[slot + 1]];
    if ((a === low && b === high) || (a === 0 && b === 0)) return slot;
    slot = (slot + 2) & mask;
  }
}
