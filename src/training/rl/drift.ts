/** How far the policy that is trained has moved from the one that sampled, from log-probabilities of the same tokens. */

export interface Drift {
  /** Sampled tokens that were compared. */
  readonly tokens: number;
  /** Estimates of KL(sampler ‖ policy) in nats a token: k1 = mean(q − ℓ), k2 = ½ mean((q − ℓ)²), k3 = mean(e^(ℓ−q) − 1 − (ℓ − q)) (joschu.net/blog/kl-approx.html). */
  readonly klK1: number;
  readonly klK2: number;
  readonly klK3: number;
  /** Mean of −q: the sampler's entropy a token, in nats. */
  readonly entropy: number;
  readonly ratioMean: number;
  readonly ratioMax: number;
  /** Share of tokens whose ratio lies outside [low, high]. */
  readonly clipFraction: number;
}

export interface Compared {
  /** [N] under the policy being trained. */
  readonly policy: ArrayLike<number>;
  /** [N] under the policy that sampled. */
  readonly sampler: ArrayLike<number>;
  /** [N] 0 where the token was not sampled. */
  readonly weights: ArrayLike<number>;
}

export interface ClipRange {
  readonly low: number;
  readonly high: number;
  /** The loss has one ratio for a whole sequence, the exponential of the mean change. */
  readonly perSequence?: boolean;
}

/** Undefined where nothing was sampled. */
export function measureDrift(data: readonly Compared[], clip: ClipRange): Drift | undefined {
  let [tokens, k1, k2, k3, entropy, ratios, ratioMax, clipped] = [0, 0, 0, 0, 0, 0, 0, 0];
  for (const { policy, sampler, weights } of data) {
    const shared = clip.perSequence ? Math.exp(meanChange({ policy, sampler, weights })) : undefined;
    for (let at = 0; at < weights.length; at++) {
      if (weights[at] === 0) continue;
      const change = (policy[at] as number) - (sampler[at] as number);
      const own = Math.exp(change);
      const ratio = shared ?? own;
      tokens += 1;
      k1 -= change;
      k2 += (change * change) / 2;
      k3 += excess(change, own);
      entropy -= sampler[at] as number;
      ratios += ratio;
      ratioMax = Math.max(ratioMax, ratio);
      if (ratio < clip.low || ratio > clip.high) clipped += 1;
    }
  }
  if (tokens === 0) return undefined;
  return {
    tokens,
    klK1: k1 / tokens,
    klK2: k2 / tokens,
    klK3: k3 / tokens,
    entropy: entropy / tokens,
    ratioMean: ratios / tokens,
    ratioMax,
    clipFraction: clipped / tokens,
  };
}

/** e^x − 1 − x, x being far from 0 or, where the difference would cancel, the first terms of its series: exact to 1e-9 either way. */
function excess(x: number, exp: number): number {
  return Math.abs(x) < 1e-3 ? x * x * (1 / 2 + x * (1 / 6 + x / 24)) : exp - 1 - x;
}

function meanChange({ policy, sampler, weights }: Compared): number {
  let [sum, count] = [0, 0];
  for (let at = 0; at < weights.length; at++) {
    if (weights[at] === 0) continue;
    sum += (policy[at] as number) - (sampler[at] as number);
    count += 1;
  }
  return count === 0 ? 0 : sum / count;
}
