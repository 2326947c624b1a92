/**
 * A Hugging Face tokenizer. The library supplies the normalizer, pre-tokenizer, model and decoder; finding added tokens
 * is done here (added.ts), because text that came from a user must be able to spell a special token without being one.
 * Text between special tokens is encoded in one piece, so borders between template and content leave no trace.
 */
import { Tokenizer as Library } from "@huggingface/tokenizers";
import { fail, messageOf } from "../diagnostic.ts";
import { type AddedToken, AddedTokenMatcher } from "./added.ts";
import { ByteDecoder, type TokenSpelling } from "./byte-decoder.ts";
import type { MarkedText } from "./shield.ts";
import { bytesOfToken, spelledBytes } from "./token-bytes.ts";

/** Cached characters of encoded text before the cache is dropped. */
const CACHE_CHARACTERS = 4_000_000;

export class Tokenizer {
  readonly addedTokens: readonly AddedToken[];
  readonly #library: Library;
  readonly #decoder: string | undefined;
  readonly #addedIds: ReadonlySet<number>;
  readonly #protected = new Set<number>();
  #first: AddedTokenMatcher;
  #second: AddedTokenMatcher;
  readonly #cache = new Map<string, readonly number[]>();
  #cached = 0;
  /** Where all of the vocabulary may be spelled bytes. */
  readonly #bytes: ByteDecoder | undefined;

  /** `json` is tokenizer.json, `config` tokenizer_config.json, `file` the former's path for diagnostics. */
  constructor(json: object, config: object, file: string) {
    try {
      this.#library = new Library(json, { ...config, remove_space: false });
    } catch (error) {
      fail("RL6101", `The tokenizer ${file} cannot be used: ${messageOf(error)}.`, { cause: error });
    }
    this.#decoder = (json as { readonly decoder?: { readonly type?: string } | null }).decoder?.type;
    this.addedTokens = [...this.#library.get_added_tokens_decoder().values()];
    this.#addedIds = new Set(this.addedTokens.map(({ id }) => id));
    for (const token of this.addedTokens) if (token.special) this.#protected.add(token.id);
    [this.#first, this.#second] = this.#matchers();
    if (this.#decoder === "ByteLevel") this.#bytes = new ByteDecoder((id) => this.#spelling(id));
  }

  /** Text that must come from the template to be a token: the special tokens, and those given to `protect`. */
  get protectedTokens(): readonly AddedToken[] {
    return this.addedTokens.filter((t) => this.#protected.has(t.id));
  }

  /** Protects more added tokens: turn markers that the tokenizer does not call special. */
  protect(ids: Iterable<number>): void {
    for (const id of ids) this.#protected.add(id);
    [this.#first, this.#second] = this.#matchers();
  }

  isProtected(id: number): boolean {
    return this.#protected.has(id);
  }

  /** Token ids, without the beginning and end tokens that a post-processor adds: templates write their own. */
  encode({ text, marks }: MarkedText): number[] {
    const allowed = (start: number, end: number, token: AddedToken) =>
      !this.#protected.has(token.id) || !marks.some((m) => m > start && m < end);
    return this.#first.split(text, allowed).flatMap((piece, index) => {
      if ("token" in piece) return [piece.token.id];
      const inside = marks.filter((m) => m > piece.start && m < piece.start + piece.text.length);
      return [
        ...this.#encodePlain(
          piece.text,
          index,
          inside.map((m) => m - piece.start),
        ),
      ];
    });
  }

  /** Encodes text in which special tokens count, such as a stop sequence or a finished prompt. */
  encodeText(text: string): number[] {
    return this.encode({ text, marks: [] });
  }

  /** Encodes text as pure content: nothing in it becomes a special token. */
  encodeContent(text: string): number[] {
    // Between characters, never inside of one: half of a surrogate pair is no text.
    const marks = Array.from({ length: Math.max(0, text.length - 1) }, (_, i) => i + 1).filter(
      (mark) => (text.codePointAt(mark - 1) ?? 0) <= 0xffff,
    );
    return this.encode({ text, marks });
  }

  decode(ids: ArrayLike<number>, options: { skipSpecial?: boolean } = {}): string {
    if (ids.length === 0) return "";
    const text = options.skipSpecial ? undefined : this.#bytes?.decode(ids);
    return text ?? this.#decodeSlowly(ids, options);
  }

  #decodeSlowly(ids: ArrayLike<number>, options: { skipSpecial?: boolean }): string {
    return this.#library.decode(Array.from(ids), {
      skip_special_tokens: options.skipSpecial ?? false,
      clean_up_tokenization_spaces: false,
    });
  }

  /** The bytes that a token adds to a text; perhaps part of a character only. */
  bytesOf(id: number): Uint8Array {
    const text = this.decode([id]);
    const spelling = this.#library.id_to_token(id);
    // An added token is spelled as it reads.
    return bytesOfToken(spelling ?? "", this.#addedIds.has(id) ? undefined : this.#decoder, text);
  }

  #spelling(id: number): TokenSpelling {
    const spelling = this.#library.id_to_token(id);
    // The library takes what reads like an added token for one, whatever its number.
    const isAdded = spelling !== undefined && this.addedTokens.some(({ content }) => content === spelling);
    if (isAdded) return { bytes: undefined, added: spelling };
    return { bytes: spelling === undefined ? undefined : spelledBytes(spelling), added: undefined };
  }

  idOf(token: string): number | undefined {
    return this.#library.token_to_id(token);
  }

  /** One more than the highest id. */
  get vocabularySize(): number {
    return this.#library.model?.vocab.length ?? 0;
  }

  #matchers(): [AddedTokenMatcher, AddedTokenMatcher] {
    // Protected tokens are always looked for in the raw text, since marks are places in it.
    const raw = this.addedTokens.filter((t) => !t.normalized || this.#protected.has(t.id));
    const normalized = this.addedTokens.filter((t) => !raw.includes(t));
    return [new AddedTokenMatcher(raw), new AddedTokenMatcher(normalized, (c) => this.#normalize(c))];
  }

  #normalize(text: string): string {
    return this.#library.normalizer?._call(text) ?? text;
  }

  /** Text without protected tokens. A model whose own vocabulary spells one is kept from using it by splitting there. */
  #encodePlain(text: string, section: number, marks: readonly number[]): readonly number[] {
    const key = `${section === 0 ? "first" : "later"}:${text}`;
    const known = marks.length === 0 ? this.#cache.get(key) : undefined;
    if (known) return known;
    let ids = this.#encodePieces(text, section);
    if (marks.length > 0 && ids.some((id) => this.#protected.has(id))) {
      const cuts = [0, ...marks, text.length];
      ids = cuts.slice(1).flatMap((end, i) => this.#encodePieces(text.slice(cuts[i], end), section + i));
    }
    if (marks.length > 0) return ids;
    if (this.#cached > CACHE_CHARACTERS) {
      this.#cache.clear();
      this.#cached = 0;
    }
    this.#cached += key.length;
    this.#cache.set(key, ids);
    return ids;
  }

  #encodePieces(text: string, section: number): number[] {
    return this.#second.split(this.#normalize(text)).flatMap((piece) => {
      if ("token" in piece) return [piece.token.id];
      const words = this.#library.pre_tokenizer?._call(piece.text, { section_index: section }) ?? [piece.text];
      const model = this.#library.model;
      if (!model) return [];
      return model._call(words).map((token: string) => {
        const id = model.tokens_to_ids.get(token) ?? model.unk_token_id;
        if (id === undefined) throw new RangeError(`token ${JSON.stringify(token)} is not in the vocabulary`);
        return id;
      });
    });
  }
}
