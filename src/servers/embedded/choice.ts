/** Which token comes next: log-probabilities of raw logits, and a choice by temperature, top-k and top-p. */
import { exp } from "./exp.ts";

export interface SamplingPolicy {
  /** 0 takes the likeliest token. */
  readonly temperature: number;
  /** 0 or less is off. */
  readonly topK: number;
  /** 1 is off. */
  readonly topP: number;
}

/** log Σ exp(logits), in double precision. */
export function logSumExp(logits: Float32Array): number {
  let most = Number.NEGATIVE_INFINITY;
  for (let i = 0; i < logits.length; i++) most = Math.max(most, logits[i] as number);
  let sum = 0;
  for (let i = 0; i < logits.length; i++) sum += exp((logits[i] as number) - most);
  return most + Math.log(sum);
}

/**
 * Divides by the temperature, keeps the top k, then of those the fewest whose probabilities reach top p (at least one),
 * and takes the token where the running sum passes `uniform` (0 ≤ uniform < 1). Equal logits rank by token id, so the
 * choice is a function of its arguments.
 */
export function chooseToken(logits: Float32Array, policy: SamplingPolicy, uniform: number): number {
  if (policy.temperature === 0) return likeliest(logits);
  const candidates = rank(logits, policy);
  const most = candidates.reduce((best, token) => Math.max(best, logits[token] as number), Number.NEGATIVE_INFINITY);
  const shares = candidates.map((token) => exp(((logits[token] as number) - most) / policy.temperature));
  const kept = policy.topP < 1 ? countToReach(shares, policy.topP) : shares.length;
  let total = 0;
  for (let i = 0; i < kept; i++) total += shares[i] as number;
  let running = 0;
  for (let i = 0; i < kept; i++) {
    running += shares[i] as number;
    if (running > uniform * total) return candidates[i] as number;
  }
  return candidates[kept - 1] as number;
}

function likeliest(logits: Float32Array): number {
  let best = 0;
  for (let token = 1; token < logits.length; token++)
    if ((logits[token] as number) > (logits[best] as number)) best = token;
  return best;
}

/** Tokens that may be chosen: by falling logit where a limit needs the order, else by id. */
function rank(logits: Float32Array, { topK, topP }: SamplingPolicy): readonly number[] {
  const isLimited = (topK > 0 && topK < logits.length) || topP < 1;
  if (!isLimited) return Array.from(logits, (_, token) => token);
  const tokens = byLikelihood(logits);
  return topK > 0 ? tokens.slice(0, topK) : tokens;
}

function byLikelihood(logits: Float32Array): readonly number[] {
  return Array.from(logits, (_, token) => token).sort((a, b) => (logits[b] as number) - (logits[a] as number) || a - b);
}

function countToReach(shares: readonly number[], topP: number): number {
  const total = shares.reduce((sum, share) => sum + share, 0);
  let running = 0;
  for (let i = 0; i < shares.length; i++) {
    running += shares[i] as number;
    if (running >= topP * total) return i + 1;
  }
  return shares.length;
}

/** The k likeliest tokens with their log-probabilities, likeliest first. */
export function topLogprobs(logits: Float32Array, k: number): readonly (readonly [number, number])[] {
  const norm = logSumExp(logits);
  return byLikelihood(logits)
    .slice(0, k)
    .map((token) => [token, (logits[token] as number) - norm]);
}
