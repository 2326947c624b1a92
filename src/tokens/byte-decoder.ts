/**
 * Text of tokens whose vocabulary spells bytes (GPT-2's way, as Qwen's and Llama's do): each token's bytes are looked up once, and a text
 * is their concatenation read as UTF-8. The library goes through the characters of the spelling each time, and a step of
 * reinforcement learning reads all that was sampled.
 */

/** Added tokens stand for their own text, and end the run of bytes before them. */
export interface TokenSpelling {
  /** Undefined for a token that is no spelling of bytes. */
  readonly bytes: Uint8Array | undefined;
  readonly added: string | undefined;
}

export class ByteDecoder {
  readonly #spell: (id: number) => TokenSpelling;
  readonly #known = new Map<number, TokenSpelling>();
  // What is no UTF-8 becomes U+FFFD, and a byte order mark stays, as in the library.
  readonly #text = new TextDecoder("utf-8", { fatal: false, ignoreBOM: true });
  #bytes = new Uint8Array(1 << 12);

  constructor(spell: (id: number) => TokenSpelling) {
    this.#spell = spell;
  }

  /** Undefined where a token is neither added nor a spelling of bytes. */
  decode(ids: ArrayLike<number>): string | undefined {
    let text = "";
    let used = 0;
    for (let i = 0; i < ids.length; i += 1) {
      const { bytes, added } = this.#spelling(ids[i] as number);
      if (added !== undefined) {
        text += this.#read(used) + added;
        used = 0;
      } else if (bytes === undefined) {
        return undefined;
      } else {
        this.#grow(used + bytes.length);
        const all = this.#bytes;
        // A few bytes each, for which `set` costs more than they do.
        for (let at = 0; at < bytes.length; at += 1) all[used++] = bytes[at] as number;
      }
    }
    return text + this.#read(used);
  }

  #spelling(id: number): TokenSpelling {
    let spelling = this.#known.get(id);
    if (spelling === undefined) {
      spelling = this.#spell(id);
      this.#known.set(id, spelling);
    }
    return spelling;
  }

  #read(length: number): string {
    return length === 0 ? "" : this.#text.decode(this.#bytes.subarray(0, length));
  }

  #grow(length: number): void {
    if (length <= this.#bytes.length) return;
    const bytes = new Uint8Array(2 * length);
    bytes.set(this.#bytes);
    this.#bytes = bytes;
  }
}
