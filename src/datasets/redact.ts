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

type UniformDetector = { readonly [K in keyof Detector]-?: Detector[K] | undefined } & Pick<
  Detector,
  "type" | "suspect" | "pattern"
>;

/** All of one shape, for which the engine makes one piece of code. */
const uniform = ({ type, suspect, pattern, anchor, accepts, hasPrefix, same }: Detector): UniformDetector => {
  return { type, suspect, pattern, anchor, accepts, hasPrefix, same };
};

/** Names of fields that are remembered to hold nothing. */
const MOST_KEYS = 1000;

/** Redacts one conversation after another: `begin`, then each of its texts, then `leftovers`. */
export class Redactor {
  readonly #detectors: readonly UniformDetector[];
  readonly #suspicion = new Suspicion();
  /** Of texts that are looked at once more, while the windows of the line are still needed. */
  readonly #secondSuspicion = new Suspicion();
  readonly #scratch = new MarkedBytes(POINTS);
  /** What every text is suspected of. */
  readonly #always: number;
  readonly #names = new Map<string, string>();
  readonly #numbers = new Map<string, number>();
  #counts: RedactionCounts = {};
  /** Texts of this conversation in which a look found nothing: a further look would find the same nothing. */
  readonly #clean = new Set<string>();
  /** Names of fields that hold nothing, of all conversations: they are few. */
  readonly #cleanKeys = new Set<string>();
  /** Pieces in which the last look still found something. */
  readonly #unclear: string[] = [];

  constructor(options: RedactOptions) {
    const own = ownDetectors(options);
    this.#detectors = [...own, ...DETECTORS].map(uniform);
    this.#always = own.length > 0 ? SUSPECT.own : 0;
  }

  /** The next conversation, with placeholders numbered anew. `counts` grows by what is replaced. */
  begin(counts: RedactionCounts): void {
    // Clearing what is empty takes new memory.
    if (this.#names.size > 0) this.#names.clear();
    if (this.#numbers.size > 0) this.#numbers.clear();
    if (this.#clean.size > 0) this.#clean.clear();
    if (this.#unclear.length > 0) this.#unclear.length = 0;
    this.#counts = counts;
  }

  /** What bytes [start, end), marked at `POINTS`, have to be looked at for; 0 where `text` would change nothing. */
  suspicion(marked: MarkedBytes, start: number, end: number): number {
    return this.#always | this.#suspicion.of(marked, start, end);
  }

  /** The last `suspicion`, with its windows. */
  get lastSuspicion(): Suspicion {
    return this.#suspicion;
  }

  #suspicionOf(text: string): number {
    this.#scratch.encode(text);
    return this.#always | this.#secondSuspicion.of(this.#scratch, 0, this.#scratch.length);
  }

  /** A text with placeholders. */
  text(text: string, suspicion = this.#suspicionOf(text)): string {
    const pieces = [text];
    const unclear = this.#unclear.length;
    this.pieces(pieces, [suspicion]);
    const clean = pieces[0] as string;
    if (this.#unclear.length === unclear) this.#clean.add(clean);
    return clean;
  }

  /** Puts placeholders into pieces of one text, each suspected of something; false where there was nothing to replace. */
  pieces(pieces: string[], suspicions: readonly number[]): boolean {
    const given = pieces.slice();
    if (!this.#replaceIn(pieces, suspicions)) return false;
    // What is replaced may leave something beside it that now stands alone, so a second look follows.
    const once = pieces.slice();
    const second: number[] = [];
    for (let i = 0; i < pieces.length; i += 1)
      second.push(pieces[i] === given[i] ? 0 : this.#suspicionOf(pieces[i] as string));
    if (this.#replaceIn(pieces, second))
      for (let i = 0; i < pieces.length; i += 1) if (pieces[i] !== once[i]) this.#unclear.push(pieces[i] as string);
    return true;
  }

  /** Whether anything changed. */
  #replaceIn(pieces: string[], suspicions: readonly number[]): boolean {
    let all = 0;
    for (let i = 0; i < suspicions.length; i += 1) all |= suspicions[i] as number;
    if (all === 0) return false;
    let isChanged = false;
    const detectors = this.#detectors;
    for (let i = 0; i < detectors.length; i += 1) {
      const detector = detectors[i] as UniformDetector;
      if ((detector.suspect & all) !== 0) isChanged = this.#replaceBy(detector, pieces, suspicions) || isChanged;
    }
    return isChanged;
  }

  #replaceBy(detector: UniformDetector, pieces: string[], suspicions: readonly number[]): boolean {
    let isChanged = false;
    for (let i = 0; i < pieces.length; i += 1) {
      if ((detector.suspect & (suspicions[i] as number)) === 0) continue;
      const piece = pieces[i] as string;
      const replaced = replaceAll(piece, detector, this.#placeholder);
      if (replaced === piece) continue;
      pieces[i] = replaced;
      isChanged = true;
    }
    return isChanged;
  }

  /** The conversation with placeholders; keys of objects stay as they are. */
  redact<C extends Conversation>(conversation: C, counts: RedactionCounts): C {
    this.begin(counts);
    return this.value(conversation);
  }

  /** A part of the conversation that was begun, with placeholders. */
  value<V>(value: V): V {
    return mapStrings(value, (text) => this.text(text)) as V;
  }

  /** Types of what is still there in what was redacted since `begin`. */
  leftovers(): string[] {
    return this.#unclear.length === 0 ? [] : this.survivors(this.#unclear);
  }

  /** Types of what is still there, in values and in keys. */
  survivors(conversation: unknown): string[] {
    const found = new Set<string>();
    const look = (text: string): void => {
      if (!this.#clean.has(text)) this.#find(text, found);
    };
    const lookAtKey = (key: string): void => {
      if (this.#cleanKeys.has(key)) return;
      const inKey = new Set<string>();
      this.#find(key, inKey);
      for (const type of inKey) found.add(type);
      if (inKey.size === 0 && this.#cleanKeys.size < MOST_KEYS) this.#cleanKeys.add(key);
    };
    visitStrings(conversation, look, lookAtKey);
    return [...found];
  }

  #find(text: string, found: Set<string>): void {
    const suspicion = this.#suspicionOf(text);
    for (const detector of this.#detectors) {
      if ((detector.suspect & suspicion) === 0) continue;
      replaceAll(text, detector, (type) => {
        found.add(type);
        return "";
      });
    }
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

function replaceAll(text: string, detector: UniformDetector, placeholder: Placeholder): string {
  const { type, pattern, anchor, accepts, hasPrefix, same } = detector;
  let result = "";
  let copied = 0;
  pattern.lastIndex = 0;
  for (;;) {
    if (anchor) {
      const at = text.indexOf(anchor.text, pattern.lastIndex);
      if (at < 0) break;
      let start = at;
      for (const first = Math.max(pattern.lastIndex, at - anchor.reach); start > first; start -= 1)
        if (!anchor.mayPrecede(text.charCodeAt(start - 1))) break;
      pattern.lastIndex = start;
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

/** Roles and types are no text of anybody's. */
const isNoText = (key: string): boolean => key === "role" || key === "type";

/** A value with each string mapped. */
function mapStrings(value: unknown, map: (text: string) => string): unknown {
  if (typeof value === "string") return map(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, map));
  const mapped: Record<string, unknown> = {};
  const given = value as Record<string, unknown>;
  for (const key of Object.keys(given)) {
    const item = isNoText(key) ? given[key] : mapStrings(given[key], map);
    if (key !== "__proto__") mapped[key] = item;
    else Object.defineProperty(mapped, key, { value: item, enumerable: true, configurable: true, writable: true });
  }
  return mapped;
}

/** Shows each string of a value, and each key. */
function visitStrings(value: unknown, look: (text: string) => void, lookAtKey: (key: string) => void): void {
  if (typeof value === "string") look(value);
  else if (Array.isArray(value)) for (const item of value) visitStrings(item, look, lookAtKey);
  else if (typeof value === "object" && value !== null)
    for (const key of Object.keys(value)) {
      lookAtKey(key);
      if (!isNoText(key)) visitStrings((value as Record<string, unknown>)[key], look, lookAtKey);
    }
}

let builtIn: Redactor | undefined;

/** Text in which known secrets and personal data are placeholders, for excerpts of bad lines. */
export function maskSecrets(text: string): string {
  builtIn ??= new Redactor({});
  const { messages } = builtIn.redact({ messages: [{ role: "user", content: text }] }, {});
  return messages[0]?.content as string;
}
