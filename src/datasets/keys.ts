/** Hashes by which conversations are compared, and a set of them that takes eight bytes a member. */
import { createHash } from "node:crypto";
import type { Message } from "../tokens/conversation.ts";

/** The first 64 bits of SHA-1: among a hundred million conversations, two differing ones meet with a chance of 3 in 10 000. */
export type Key = bigint;

export const keyOf = (text: string): Key => createHash("sha1").update(text).digest().readBigUInt64LE(0);

export interface ConversationKeys {
  readonly whole: Key;
  /** Of every shorter conversation that begins this one and ends with an answer. */
  readonly beginnings: readonly Key[];
}

/** Keys of a conversation and of its beginnings: one pass over the text. */
export function conversationKeys(messages: readonly Message[]): ConversationKeys {
  const hash = createHash("sha1");
  const beginnings: Key[] = [];
  for (const [i, message] of messages.entries()) {
    hash.update(JSON.stringify(message));
    if (message.role === "assistant" && i < messages.length - 1)
      beginnings.push(hash.copy().digest().readBigUInt64LE(0));
  }
  return { whole: hash.digest().readBigUInt64LE(0), beginnings };
}

/** A number in [0, 1) that depends on a conversation's beginning alone, up to its first question. */
export function splitPoint(messages: readonly Message[]): number {
  const question = messages.findIndex((m) => m.role === "user");
  const key = keyOf(JSON.stringify(messages.slice(0, question < 0 ? 1 : question + 1)));
  return Number(key >> 11n) / 2 ** 53;
}

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
