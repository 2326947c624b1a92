/**
 * What near duplicates are told by: the set of a conversation's word 5-grams ("shingles"), each as a hash of 32 bits. Words are runs of
 * letters and digits of any script, without their case; where a script writes without blanks, each character is one. Each turn
 * begins with a word for its role. System messages are left out: a long one that all conversations share would make all alike.
 */
import type { Message } from "../../tokens/conversation.ts";

/** Words in a shingle, as Lee et al. (2022), "Deduplicating Training Data Makes Language Models Better", take them. */
const SHINGLE_WORDS = 5;

/** Classes of UTF-16 units: between words, part of a word, a word of its own. 0: not looked at yet. */
const [SEPARATOR, LETTER, WORD] = [1, 2, 3];

const classes = new Uint8Array(1 << 16);
/** Units without their case. */
const lower = new Uint16Array(1 << 16);

/** Scripts that write without blanks, and halves of surrogate pairs, most of which are such or pictures. */
const NO_BLANKS =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\ud800-\udfff]/u;

function classify(unit: number): number {
  const text = String.fromCharCode(unit);
  const isSurrogate = unit >= 0xd800 && unit <= 0xdfff;
  const kind = isSurrogate || NO_BLANKS.test(text) ? WORD : /[\p{L}\p{N}\p{M}]/u.test(text) ? LETTER : SEPARATOR;
  const small = text.toLowerCase();
  lower[unit] = small.length === 1 ? small.charCodeAt(0) : unit;
  classes[unit] = kind;
  return kind;
}

/** MurmurHash3's last step: each bit of the result depends on all bits. */
export function mixed(hash: number): number {
  let h = hash;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** FNV-1a over UTF-16 units. */
const [FNV_BASIS, FNV_PRIME] = [0x811c9dc5, 0x01000193];

/** Words of one conversation after another, and the shingles that they make. */
class Words {
  #hashes = new Uint32Array(1 << 12);
  #length = 0;

  begin(): void {
    this.#length = 0;
  }

  add(hash: number): void {
    if (this.#length === this.#hashes.length) {
      const more = new Uint32Array(this.#length * 2);
      more.set(this.#hashes);
      this.#hashes = more;
    }
    this.#hashes[this.#length] = mixed(hash);
    this.#length += 1;
  }

  addText(text: string): void {
    let hash = FNV_BASIS;
    let isWithin = false;
    for (let i = 0; i < text.length; i += 1) {
      const unit = text.charCodeAt(i);
      const kind = classes[unit] || classify(unit);
      if (isWithin && kind !== LETTER) {
        this.add(hash);
        isWithin = false;
      }
      if (kind === LETTER) {
        hash = Math.imul((isWithin ? hash : FNV_BASIS) ^ (lower[unit] as number), FNV_PRIME);
        isWithin = true;
      } else if (kind === WORD) this.add(Math.imul(FNV_BASIS ^ unit, FNV_PRIME));
    }
    if (isWithin) this.add(hash);
  }

  /** Sorted, each once. Fewer words than a shingle has are one. */
  shingles(): Uint32Array<ArrayBuffer> {
    const words = this.#hashes;
    const count = Math.max(1, this.#length - SHINGLE_WORDS + 1);
    const size = Math.min(SHINGLE_WORDS, this.#length);
    const shingles = new Uint32Array(count);
    for (let i = 0; i < count; i += 1) {
      let hash = 0;
      for (let j = i; j < i + size; j += 1) hash = Math.imul(hash ^ (words[j] as number), 0x9e3779b1) + j - i;
      shingles[i] = mixed(hash);
    }
    return distinct(shingles.sort());
  }
}

function distinct(sorted: Uint32Array<ArrayBuffer>): Uint32Array<ArrayBuffer> {
  let length = 0;
  for (let i = 0; i < sorted.length; i += 1)
    if (i === 0 || sorted[i] !== sorted[i - 1]) {
      sorted[length] = sorted[i] as number;
      length += 1;
    }
  return sorted.subarray(0, length);
}

const words = new Words();

/** The conversation's set of shingles: sorted, each once, at least one. */
export function shinglesOf(messages: readonly Message[]): Uint32Array<ArrayBuffer> {
  words.begin();
  for (const message of messages) {
    if (message.role === "system") continue;
    words.addText(`\ue000${message.role} `);
    const { content } = message;
    words.addText(typeof content === "string" ? content : content === undefined ? "" : JSON.stringify(content));
    if (message.tool_calls !== undefined) words.addText(JSON.stringify(message.tool_calls));
  }
  return words.shingles();
}

/** Of two sorted sets: what they share over what either has (Jaccard). Both empty: 1. */
export function similarity(a: Uint32Array, b: Uint32Array): number {
  let [i, j, shared] = [0, 0, 0];
  while (i < a.length && j < b.length) {
    const [x, y] = [a[i] as number, b[j] as number];
    if (x === y) shared += 1;
    if (x <= y) i += 1;
    if (y <= x) j += 1;
  }
  const all = a.length + b.length - shared;
  return all === 0 ? 1 : shared / all;
}
