/**
 * Redaction: personal data and secrets become typed placeholders, `[EMAIL_1]`. The same value has the same placeholder
 * within a conversation. Values are counted by type and never kept, printed or stored.
 */
import { fail } from "../diagnostic.ts";
import type { Conversation } from "../tokens/conversation.ts";
import { MarkedBytes } from "./marks.ts";
import type { RedactOptions } from "./options.ts";
import { DETECTORS, type Detector } from "./redact/detectors.ts";
import { POINTS, SUSPECT, Suspicion } from "./redact/suspicion.ts";

/** Redactions by type. */
export type RedactionCounts = Record<string, number>;

/** A known pattern is in a row after redaction. */
export class SurvivedError extends Error {
  readonly types: readonly string[];
  /** Where the row's line is, counted from its block's first. */
  place: { readonly line: number; readonly column: number } | undefined;
  constructor(types: readonly string[]) {
    super(`not redacted: ${types.join(", ")}`);
    this.types = types;
  }
}

const NOTHING_AROUND = { before: "(?<![\\p{L}\\p{N}_])", after: "(?![\\p{L}\\p{N}_])" };

/** Detectors of the user's names and patterns. Fails with RL6011 for a pattern that is none, or that matches nothing at all. */
function ownDetectors({ names = [], patterns = [] }: RedactOptions): Detector[] {
  const own = patterns.map((source): Detector => ({ type: "CUSTOM", suspect: SUSPECT.own, pattern: compile(source) }));
  const words = names.map((name) => name.trim()).filter((name) => name !== "");
  if (words.length === 0) return own;
  // The longest first, so that a full name is one placeholder.
  const escaped = [...words]
    .sort((a, b) => b.length - a.length)
    .map((w) => w.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&").replace(/\s+/g, "\\s+"));
  const { before, after } = NOTHING_AROUND;
  const pattern = new RegExp(`${before}(?:${escaped.join("|").replaceAll("\\-", "-")})${after}`, "giu");
  return [...own, { type: "NAME", suspect: SUSPECT.own, pattern, same: (m) => m.toLowerCase().replace(/\s+/g, " ") }];
}

function compile(source: string): RegExp {
  let pattern: RegExp;
  try {
    pattern = new RegExp(source, "gu");
  } catch {
    return fail("RL6011", `The pattern ${JSON.stringify(source)} is not a regular expression.`);
  }
  if (new RegExp(source, "u").test(""))
    fail("RL6011", `The pattern ${JSON.stringify(source)} matches nothing at all, so it would match everywhere.`);
  return pattern;
}

/** Redacts one conversation after another: `begin`, then each of its texts. */
export class Redactor {
  readonly #detectors: readonly Detector[];
  readonly #suspicion = new Suspicion();
  readonly #scratch = new MarkedBytes(POINTS);
  /** What every text is suspected of. */
  readonly #always: number;
  readonly #names = new Map<string, string>();
  readonly #numbers = new Map<string, number>();
  #counts: RedactionCounts = {};
  /** Texts of this conversation in which nothing was found: a second look would find the same nothing. */
  readonly #clean = new Set<string>();

  constructor(options: RedactOptions) {
    const own = ownDetectors(options);
    this.#detectors = [...own, ...DETECTORS];
    this.#always = own.length > 0 ? SUSPECT.own : 0;
  }

  /** The next conversation, with placeholders numbered anew. `counts` grows by what is replaced. */
  begin(counts: RedactionCounts): void {
    this.#names.clear();
    this.#numbers.clear();
    this.#clean.clear();
    this.#counts = counts;
  }

  /** What bytes [start, end), marked at `POINTS`, have to be looked at for; 0 where `text` would change nothing. */
  suspicion(marked: MarkedBytes, start: number, end: number): number {
    return this.#always | this.#suspicion.of(marked, start, end);
  }

  /** Of the last suspicion: see there. */
  get windows(): readonly number[] {
    return this.#suspicion.windows;
  }

  #suspicionOf(text: string): number {
    this.#scratch.encode(text);
    return this.suspicion(this.#scratch, 0, this.#scratch.length);
  }

  /** A text with placeholders. */
  text(text: string): string {
    const suspicion = this.#suspicionOf(text);
    const pieces = [text];
    if (suspicion === 0 || !this.pieces(pieces, suspicion)) this.#clean.add(text);
    return pieces[0] as string;
  }

  /** Puts placeholders into pieces of one text; false where there was nothing to replace. */
  pieces(pieces: string[], suspicion: number): boolean {
    const given = [...pieces];
    this.#replaceIn(pieces, suspicion);
    // What is replaced may leave something beside it that now stands alone, so a second look follows.
    let second = 0;
    for (const [i, piece] of pieces.entries()) if (piece !== given[i]) second |= this.#suspicionOf(piece);
    if (second !== 0) this.#replaceIn(pieces, second);
    return pieces.some((piece, i) => piece !== given[i]);
  }

  #replaceIn(pieces: string[], suspicion: number): void {
    for (const detector of this.#detectors) {
      if ((detector.suspect & suspicion) === 0) continue;
      for (const [i, piece] of pieces.entries()) pieces[i] = replaceAll(piece, detector, this.#placeholder);
    }
  }

  /** The conversation with placeholders; keys of objects stay as they are. */
  redact<C extends Conversation>(conversation: C, counts: RedactionCounts): C {
    this.begin(counts);
    return mapStrings(conversation, (text) => this.text(text)) as C;
  }

  /** Types of what is still there, in values and in keys. */
  survivors(conversation: unknown): string[] {
    const found = new Set<string>();
    const look = (text: string): string => {
      if (this.#clean.has(text)) return text;
      const suspicion = this.#suspicionOf(text);
      for (const detector of this.#detectors) {
        if ((detector.suspect & suspicion) === 0) continue;
        replaceAll(text, detector, (type) => {
          found.add(type);
          return "";
        });
      }
      return text;
    };
    mapStrings(conversation, look, look);
    return [...found];
  }

  readonly #placeholder = (type: string, value: string): string => {
    this.#counts[type] = (this.#counts[type] ?? 0) + 1;
    const key = `${type} ${value}`;
    const known = this.#names.get(key);
    if (known) return known;
    const number = (this.#numbers.get(type) ?? 0) + 1;
    this.#numbers.set(type, number);
    const name = `[${type}_${number}]`;
    this.#names.set(key, name);
    return name;
  };
}

type Placeholder = (type: string, value: string) => string;

function replaceAll(text: string, detector: Detector, placeholder: Placeholder): string {
  const { type, pattern, anchor, accepts, hasPrefix, same } = detector;
  let result = "";
  let copied = 0;
  pattern.lastIndex = 0;
  for (;;) {
    if (anchor) {
      const at = text.indexOf(anchor.text, pattern.lastIndex);
      if (at < 0) break;
      pattern.lastIndex = Math.max(pattern.lastIndex, at - anchor.reach);
    }
    const found = pattern.exec(text);
    if (!found) break;
    const whole = found[0];
    const kept = hasPrefix ? (found[1] as string) : "";
    const match = whole.slice(kept.length);
    // What a user's pattern finds between characters is nothing to hide.
    if (whole === "") pattern.lastIndex += 1;
    if (whole === "" || isPlaceholder(match) || (accepts && !accepts(match, text, found.index))) continue;
    result += text.slice(copied, found.index) + kept + placeholder(type, same ? same(match) : match);
    copied = found.index + whole.length;
  }
  pattern.lastIndex = 0;
  return copied === 0 ? text : result + text.slice(copied);
}

const isPlaceholder = (match: string): boolean => /^\[[A-Z_]+_\d+\]/.test(match);

/** A value with each string mapped; the keys too where a second function is given. Roles and types are no text of anybody's. */
function mapStrings(value: unknown, map: (text: string) => string, mapKey?: (key: string) => string): unknown {
  if (typeof value === "string") return map(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, map, mapKey));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => {
      mapKey?.(key);
      return [key, key === "role" || key === "type" ? item : mapStrings(item, map, mapKey)];
    }),
  );
}

let builtIn: Redactor | undefined;

/** Text in which known secrets and personal data are placeholders, for excerpts of bad lines. */
export function maskSecrets(text: string): string {
  builtIn ??= new Redactor({});
  const { messages } = builtIn.redact({ messages: [{ role: "user", content: text }] }, {});
  return messages[0]?.content as string;
}
