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
  return foldKey(before, kind, scratch, 1, scratch.length - 1);
}

/** The same, of content that stands as canonical JSON in bytes [start, end), quotes not among them. */
export function foldKey(before: Key, kind: Key, marked: MarkedBytes, start: number, end: number): Key {
  return marked.hash(start, end, before ^ kind);
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

/** A number in [0, 1) that depends on a conversation's beginning alone, up to its first question. */
export function splitPoint(messages: readonly Message[]): number {
  const question = messages.findIndex((m) => m.role === "user");
  return pointOf(conversationKeys(messages.slice(0, question < 0 ? 1 : question + 1)).whole);
}

/** A key as a number in [0, 1). */
export const pointOf = (key: Key): number => Number(BigInt.asUintN(64, key) >> 11n) / 2 ** 53;

const SMALLEST = 1 << 12;

/** Open addressing over one typed array. Zero marks an empty slot, so that key has a flag of its own. */
export class KeySet {
  #slots = new BigUint64Array(SMALLEST);
  #size = 0;
  #hasZero = false;

  /** Whether the key is new. */
  add(key: Key): boolean {
    if (key === 0n) {
      const isNew = !this.#hasZero;
      this.#hasZero = true;
      return isNew;
    }
    const slot = this.#find(this.#slots, key);
    if (this.#slots[slot] === key) return false;
    this.#slots[slot] = key;
    this.#size += 1;
    if (this.#size * 4 > this.#slots.length * 3) this.#grow();
    return true;
  }

  has(key: Key): boolean {
    return key === 0n ? this.#hasZero : this.#slots[this.#find(this.#slots, key)] === key;
  }

  #find(slots: BigUint64Array, key: Key): number {
    const mask = slots.length - 1;
    let slot = Number(key & 0xffff_ffffn) & mask;
    while (slots[slot] !== 0n && slots[slot] !== key) slot = (slot + 1) & mask;
    return slot;
  }

  #grow(): void {
    const slots = new BigUint64Array(this.#slots.length * 2);
    for (const key of this.#slots) if (key !== 0n) slots[this.#find(slots, key)] = key;
    this.#slots = slots;
  }
}
