/** "Did you mean": the nearest of some names by edit distance, and lists of names for a reader. */

/** Names longer than this are not compared: a typo in so long a name is better found by reading. */
const LONGEST = 64;

/**
 * Optimal string alignment distance (insert, delete, substitute, swap neighbours), or `limit + 1` if it is greater.
 * O(length²), bounded by `LONGEST`.
 */
export function editDistance(a: string, b: string, limit: number): number {
  if (Math.abs(a.length - b.length) > limit) return limit + 1;
  let before: number[] = [];
  let last = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    let smallest = i;
    for (let j = 1; j <= b.length; j++) {
      const cost = a[i - 1] === b[j - 1] ? 0 : 1;
      let d = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + cost);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) d = Math.min(d, before[j - 2]! + 1);
      row.push(d);
      if (d < smallest) smallest = d;
    }
    if (smallest > limit) return limit + 1;
    before = last;
    last = row;
  }
  return last[b.length]!;
}

/** The candidate that was most likely meant, or undefined if none is near: a third of the letters may differ. */
export function closest(name: string, candidates: Iterable<string>): string | undefined {
  if (name.length === 0 || name.length > LONGEST) return undefined;
  const plain = name.toLowerCase().replaceAll("-", "_");
  let limit = Math.max(1, Math.floor(name.length / 3));
  let found: string | undefined;
  for (const candidate of candidates) {
    if (candidate.length > LONGEST) continue;
    const distance = editDistance(plain, candidate.toLowerCase().replaceAll("-", "_"), limit);
    if (distance > limit) continue;
    found = candidate;
    if (distance === 0) return candidate;
    limit = distance - 1;
  }
  return found;
}

/** A hint sentence with a leading space, or nothing. */
export function didYouMean(name: string, candidates: Iterable<string>): string {
  const found = closest(name, candidates);
  return found === undefined ? "" : ` Did you mean \`${found}\`?`;
}

/** The same, or all that there is where nothing is near. */
export function didYouMeanOf(name: string, candidates: Iterable<string>): string {
  const all = [...new Set(candidates)];
  return didYouMean(name, all) || (all.length === 0 ? "" : ` There is ${listNames(all)}.`);
}

/** `a`, `b` and `c` (or with another `word`); long lists are cut and counted. */
export function listNames(names: Iterable<string>, most = 8, word: "and" | "or" = "and"): string {
  const all = [...names];
  const shown = all.slice(0, most).map((n) => `\`${n}\``);
  if (all.length > most) return `${shown.join(", ")} and ${all.length - most} more`;
  return shown.length < 2 ? shown.join("") : `${shown.slice(0, -1).join(", ")} ${word} ${shown.at(-1)}`;
}
