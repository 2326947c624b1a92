/** What of a text that is still being written may be shown already. */

/** A character takes up to four bytes, so of one that is not whole up to three are there, each perhaps shown as U+FFFD. */
const MOST_OPEN = 3;
const REPLACEMENT = "\uFFFD";

/** UTF-16 units at the start of `text` that no further token changes and with which no stop string begins. */
export function settledLength(text: string, stops: readonly string[]): number {
  let end = text.length;
  while (end > 0 && text.length - end < MOST_OPEN && text[end - 1] === REPLACEMENT) end -= 1;
  const longest = Math.max(0, ...stops.map((stop) => stop.length - 1));
  for (let from = Math.max(0, end - longest); from < end; from++) {
    const tail = text.slice(from, end);
    if (stops.some((stop) => stop.startsWith(tail))) return from;
  }
  return end;
}

/**
 * Where the stop string begins that is whole first (of those that end at one place, the longest), looking from `from` on; undefined where
 * there is none. So a text is cut at the same place however it comes in pieces.
 */
export function findStop(text: string, stops: readonly string[], from = 0): number | undefined {
  const longest = Math.max(0, ...stops.map((stop) => stop.length - 1));
  const start = Math.max(0, from - longest);
  let found: { readonly at: number; readonly end: number } | undefined;
  for (const stop of stops) {
    const at = text.indexOf(stop, start);
    const end = at + stop.length;
    if (at >= 0 && (!found || end < found.end || (end === found.end && at < found.at))) found = { at, end };
  }
  return found?.at;
}
