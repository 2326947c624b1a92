/**
 * Keeps special-token text inside content plain text. Before rendering, every string of the conversation that spells a
 * protected token gets a sentinel character behind the spelling's first character; strings that end in the beginning
 * of one do too, since a template may join two of them. After rendering, the sentinels are taken out and their places
 * are kept as marks: the tokenizer never matches a protected token across a mark. Everything else of the content
 * reaches the template and the tokenizer untouched, so ordinary text gives exactly the tokens it always gives.
 */

/** Text to tokenise. `marks` are ascending offsets in UTF-16 units: no protected token may span one. */
export interface MarkedText {
  readonly text: string;
  readonly marks: readonly number[];
}

/** First private-use character that no string of `values` holds, so that taking it out again loses nothing. */
function freeCharacter(values: readonly unknown[]): string {
  const seen = new Set<number>();
  const visit = (value: unknown): void => {
    if (typeof value === "string") {
      for (let i = 0; i < value.length; i += 1) {
        const unit = value.charCodeAt(i);
        if (unit >= 0xe000 && unit <= 0xf8ff) seen.add(unit);
      }
    } else if (Array.isArray(value)) value.forEach(visit);
    else if (typeof value === "object" && value !== null) Object.entries(value).forEach(visit);
  };
  values.forEach(visit);
  for (let unit = 0xe000; unit <= 0xf8ff; unit += 1) if (!seen.has(unit)) return String.fromCharCode(unit);
  throw new RangeError("a conversation uses every private-use character");
}

const firstPoint = (token: string) => ((token.codePointAt(0) as number) > 0xffff ? 2 : 1);

/** Puts and removes the sentinels of one conversation. */
export class Shield {
  readonly #sentinel: string;
  readonly #tokens: readonly string[];

  /** `tokens`: the protected spellings; `inputs`: everything that will be shielded, and the template's own text. */
  constructor(tokens: readonly string[], ...inputs: unknown[]) {
    this.#tokens = tokens.filter((t) => t.length > firstPoint(t));
    this.#sentinel = freeCharacter(inputs);
  }

  /** A copy of any JSON value with all its strings, keys included, shielded. */
  cover<T>(value: T): T {
    if (typeof value === "string") return this.#coverText(value) as T;
    if (Array.isArray(value)) return value.map((item) => this.cover(item)) as T;
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [this.#coverText(k), this.cover(v)])) as T;
  }

  /** The rendered text without sentinels, and where they stood. */
  uncover(rendered: string): MarkedText {
    const parts = rendered.split(this.#sentinel);
    const marks: number[] = [];
    let length = 0;
    for (const part of parts.slice(0, -1)) {
      length += part.length;
      marks.push(length);
    }
    return { text: parts.join(""), marks };
  }

  #coverText(text: string): string {
    const places = new Set<number>();
    for (const token of this.#tokens) {
      const first = token.slice(0, firstPoint(token));
      for (let at = text.indexOf(first); at >= 0; at = text.indexOf(first, at + 1)) {
        // Whole, or cut off by the end of this string: the template may put the rest behind it.
        const rest = text.slice(at, at + token.length);
        if (token.startsWith(rest)) places.add(at + first.length);
      }
    }
    if (places.size === 0) return text;
    let out = "";
    let done = 0;
    for (const place of [...places].sort((a, b) => a - b)) {
      out += text.slice(done, place) + this.#sentinel;
      done = place;
    }
    return out + text.slice(done);
  }
}
