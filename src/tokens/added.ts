/**
 * Finds added tokens in text the way Hugging Face tokenizers do: leftmost, then longest, each with its own rules about
 * the white space and the words around it.
 */

/** An entry of `added_tokens` in tokenizer.json. */
export interface AddedToken {
  readonly id: number;
  readonly content: string;
  readonly special: boolean;
  readonly single_word: boolean;
  readonly lstrip: boolean;
  readonly rstrip: boolean;
  /** Matched after the normalizer has run instead of before. */
  readonly normalized: boolean;
}

/** A stretch of text, or an added token found in it. `start` is its offset in UTF-16 units. */
export type Piece =
  | { readonly text: string; readonly start: number }
  | { readonly token: AddedToken; readonly start: number };

const WORD = /[\p{L}\p{N}\p{M}\p{Pc}]/u;

export class AddedTokenMatcher {
  /** First UTF-16 unit → candidates, longest first. */
  readonly #byFirst = new Map<number, { spelling: string; token: AddedToken }[]>();

  /** `spell` gives the text to look for where it is not the token's content (after normalisation). */
  constructor(tokens: readonly AddedToken[], spell: (content: string) => string = (c) => c) {
    for (const token of tokens) {
      const spelling = spell(token.content);
      if (spelling === "") continue;
      const list = this.#byFirst.get(spelling.charCodeAt(0)) ?? [];
      this.#byFirst.set(spelling.charCodeAt(0), list);
      list.push({ spelling, token });
    }
    for (const list of this.#byFirst.values()) list.sort((a, b) => b.spelling.length - a.spelling.length);
  }

  get isEmpty(): boolean {
    return this.#byFirst.size === 0;
  }

  /** Splits `text`; `allowed` may refuse a match that would cover [start, end). */
  split(text: string, allowed: (start: number, end: number, token: AddedToken) => boolean = () => true): Piece[] {
    const pieces: Piece[] = [];
    let from = 0;
    const pushText = (to: number) => {
      if (to > from) pieces.push({ text: text.slice(from, to), start: from });
    };
    for (let i = 0; i < text.length; ) {
      const found = this.#matchAt(text, i, allowed);
      if (!found) {
        i += 1;
        continue;
      }
      let [start, end] = [i, i + found.spelling.length];
      if (found.token.lstrip) while (start > from && /\s/.test(text[start - 1] as string)) start -= 1;
      if (found.token.rstrip) while (end < text.length && /\s/.test(text[end] as string)) end += 1;
      pushText(start);
      pieces.push({ token: found.token, start });
      from = end;
      i = end;
    }
    pushText(text.length);
    return pieces;
  }

  #matchAt(text: string, at: number, allowed: (start: number, end: number, token: AddedToken) => boolean) {
    for (const candidate of this.#byFirst.get(text.charCodeAt(at)) ?? []) {
      const end = at + candidate.spelling.length;
      if (!text.startsWith(candidate.spelling, at)) continue;
      if (candidate.token.single_word && (WORD.test(text[at - 1] ?? "") || WORD.test(text[end] ?? ""))) continue;
      if (allowed(at, end, candidate.token)) return candidate;
    }
    return undefined;
  }
}
