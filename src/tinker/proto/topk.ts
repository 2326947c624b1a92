/** Most probable tokens by position. Apart from the messages, so that the public types need no package to be read. */

/** The log-probability of a slot that no token fills. */
export const NO_LOGPROB = -99_999;

/** The k most probable tokens of each position. Slots that no token fills hold token 0 and `NO_LOGPROB`. */
export interface TopK {
  readonly length: number;
  readonly k: number;
  /** [length, k] */
  readonly tokens: Int32Array;
  /** [length, k] in nats, descending. */
  readonly logprobs: Float32Array;
}

/** Tokens and log-probabilities of position `i`, without unused slots; undefined if the position has none. */
export function topkRow(topk: TopK, i: number): { tokens: Int32Array; logprobs: Float32Array } | undefined {
  const start = i * topk.k;
  let end = start;
  while (end < start + topk.k && topk.logprobs[end] !== NO_LOGPROB) end += 1;
  if (end === start) return undefined;
  return { tokens: topk.tokens.subarray(start, end), logprobs: topk.logprobs.subarray(start, end) };
}

/** Rows of any length as a matrix as wide as the widest, at least 1. */
export function topkOf(rows: readonly (readonly (readonly [number, number])[] | null)[]): TopK {
  const k = rows.reduce((most, row) => Math.max(most, row?.length ?? 0), 1);
  const tokens = new Int32Array(rows.length * k);
  const logprobs = new Float32Array(rows.length * k).fill(NO_LOGPROB);
  rows.forEach((row, i) => {
    row?.forEach(([token, logprob], j) => {
      tokens[i * k + j] = token;
      logprobs[i * k + j] = logprob;
    });
  });
  return { length: rows.length, k, tokens, logprobs };
}
