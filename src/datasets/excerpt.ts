/** A few characters of a bad line, to recognise it by: no secrets, no control characters. */
import { maskSecrets } from "./redact.ts";

const BEFORE = 24;
const AFTER = 36;
/** Secrets that the excerpt cuts in two must still be found, so they are looked for in more than is shown. */
const MARGIN = 200;

/** The surroundings of a place in a line, as `…shown text…`. */
export function excerptAt(text: string, at: number): string {
  const from = Math.max(0, at - BEFORE);
  const to = Math.min(text.length, at + AFTER);
  const left = maskSecrets(text.slice(Math.max(0, from - MARGIN), at));
  const masked = maskSecrets(text.slice(Math.max(0, from - MARGIN), Math.min(text.length, to + MARGIN)));
  const start = Math.max(0, Math.min(left.length, masked.length) - BEFORE);
  const shown = masked.slice(start, start + BEFORE + AFTER);
  // Control, format and separator characters, and halves of pairs that the cut made: none of it may reach a terminal.
  const clean = shown.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu, "·");
  return `${from > 0 ? "…" : ""}${clean}${to < text.length ? "…" : ""}`;
}
