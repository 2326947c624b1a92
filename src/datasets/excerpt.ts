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
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not reach a terminal.
  const clean = shown.replace(
    /[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g,
    "·",
  );
  return `${from > 0 ? "…" : ""}${clean}${to < text.length ? "…" : ""}`;
}
