/**
 * Redaction: personal data and secrets become typed placeholders, `[EMAIL_1]`. The same value has the same placeholder
 * within a conversation. Values are counted by type and never kept, printed or stored.
 */
import { fail } from "../diagnostic.ts";
import type { Conversation } from "../tokens/conversation.ts";
import type { RedactOptions } from "./options.ts";
import { DETECTORS, type Detector } from "./redact/detectors.ts";

/** Redactions by type. */
export type RedactionCounts = Record<string, number>;

const NOTHING_AROUND = { before: "(?<![\\p{L}\\p{N}_])", after: "(?![\\p{L}\\p{N}_])" };

/** Detectors of the user's names and patterns. Fails with RL6011 for a pattern that is none, or that matches nothing at all. */
function ownDetectors({ names = [], patterns = [] }: RedactOptions): Detector[] {
  const own = patterns.map((source): Detector => ({ type: "CUSTOM", hint: () => true, pattern: compile(source) }));
  const words = names.map((name) => name.trim()).filter((name) => name !== "");
  if (words.length === 0) return own;
  // The longest first, so that a full name is one placeholder.
  const escaped = [...words]
    .sort((a, b) => b.length - a.length)
    .map((w) => w.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&").replace(/\s+/g, "\\s+"));
  const { before, after } = NOTHING_AROUND;
  const pattern = new RegExp(`${before}(?:${escaped.join("|").replaceAll("\\-", "-")})${after}`, "giu");
  return [...own, { type: "NAME", hint: () => true, pattern, same: (m) => m.toLowerCase().replace(/\s+/g, " ") }];
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

export class Redactor {
  readonly #detectors: readonly Detector[];
  /** Texts of the last conversation in which nothing was found: a second look would find the same nothing. */
  readonly #clean = new Set<string>();

  constructor(options: RedactOptions) {
    this.#detectors = [...ownDetectors(options), ...DETECTORS];
  }

  /** The conversation with placeholders. `counts` grows by what was replaced; keys of objects stay as they are. */
  redact<C extends Conversation>(conversation: C, counts: RedactionCounts): C {
    const names = new Map<string, string>();
    const numbers = new Map<string, number>();
    const placeholder = (type: string, value: string): string => {
      counts[type] = (counts[type] ?? 0) + 1;
      const key = `${type} ${value}`;
      const known = names.get(key);
      if (known) return known;
      const number = (numbers.get(type) ?? 0) + 1;
      numbers.set(type, number);
      const name = `[${type}_${number}]`;
      names.set(key, name);
      return name;
    };
    // What is replaced may leave something beside it that now stands alone, so a second look follows.
    const clean = (text: string): string => {
      const once = this.#replace(text, placeholder);
      if (once === text) this.#clean.add(text);
      return once === text ? text : this.#replace(once, placeholder);
    };
    this.#clean.clear();
    return mapStrings(conversation, clean) as C;
  }

  /** Types of what is still there, in values and in keys. */
  survivors(conversation: Conversation): string[] {
    const found = new Set<string>();
    const look = (text: string): string => {
      if (this.#clean.has(text)) return text;
      this.#replace(text, (type) => {
        found.add(type);
        return "";
      });
      return text;
    };
    mapStrings(conversation, look, look);
    return [...found];
  }

  #replace(given: string, placeholder: (type: string, value: string) => string): string {
    let result = given;
    for (const { type, hint, pattern, accepts, hasPrefix, same } of this.#detectors) {
      if (!hint(result)) continue;
      const text = result;
      result = text.replace(pattern, (whole: string, ...rest: unknown[]) => {
        const kept = hasPrefix ? (rest[0] as string) : "";
        const match = whole.slice(kept.length);
        const at = rest.find((value) => typeof value === "number") as number;
        if (isPlaceholder(match) || (accepts && !accepts(match, text, at))) return whole;
        return kept + placeholder(type, same ? same(match) : match);
      });
    }
    return result;
  }
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
