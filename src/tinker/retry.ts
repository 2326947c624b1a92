/** When and how long to wait before trying again. */
import { setTimeout as sleep } from "node:timers/promises";

export interface RetryPolicy {
  /** Tries go on until this long after the first one. */
  readonly deadlineMs: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
}

export const DEFAULT_RETRY: RetryPolicy = { deadlineMs: 300_000, firstDelayMs: 500, maxDelayMs: 10_000 };

/** The longest `Retry-After` that is obeyed. */
const MAX_RETRY_AFTER_MS = 60_000;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Statuses after which the same request may succeed. 409 is final here: it means a true conflict. */
export function isRetryable(status: number, headers: Headers): boolean {
  const override = headers["x-should-retry"];
  if (override === "true" || override === "false") return override === "true";
  return status === 408 || status === 429 || status >= 500;
}

export function retryAfterMs(headers: Headers): number | undefined {
  const ms = Number(headers["retry-after-ms"] ?? Number.NaN);
  const given = headers["retry-after"];
  const seconds = Number(given ?? Number.NaN);
  const date = typeof given === "string" && Number.isNaN(seconds) ? Date.parse(given) - Date.now() : Number.NaN;
  const wait = [ms, seconds * 1000, date].find((value) => value > 0);
  return wait !== undefined && wait <= MAX_RETRY_AFTER_MS ? wait : undefined;
}

/** While an account is out of credit (402), a call is tried again at this pace: somebody may be paying right now. */
export interface BillingTimes {
  readonly pauseMs: number;
  /** A call is put off no longer than this. */
  readonly mostMs: number;
}

export const DEFAULT_BILLING: BillingTimes = { pauseMs: 5000, mostMs: 3_600_000 };

/** The pauses of one call. */
export class BillingPause {
  readonly #times: BillingTimes;
  #startedAt: number | undefined;

  constructor(times: BillingTimes) {
    this.#times = times;
  }

  /** Waits before the next try; false if the call has been put off for long enough. */
  async again(signal: AbortSignal | undefined): Promise<boolean> {
    const { pauseMs, mostMs } = this.#times;
    this.#startedAt ??= performance.now();
    if (performance.now() - this.#startedAt + pauseMs > mostMs) return false;
    await sleep(pauseMs, undefined, signal ? { signal } : {});
    return true;
  }
}

/** Counts the tries of one request. */
export class Attempts {
  readonly #policy: RetryPolicy;
  readonly #startedAt = performance.now();
  #failures = 0;

  constructor(policy: RetryPolicy) {
    this.#policy = policy;
  }

  /** Waits before the next try; false if the deadline would pass. Full delays shrink by up to a quarter at random. */
  async again(signal: AbortSignal | undefined, afterMs?: number): Promise<boolean> {
    const { firstDelayMs, maxDelayMs, deadlineMs } = this.#policy;
    const backOff = Math.min(firstDelayMs * 2 ** this.#failures, maxDelayMs) * (0.75 + Math.random() / 4);
    this.#failures += 1;
    const wait = afterMs ?? backOff;
    if (performance.now() - this.#startedAt + wait > deadlineMs) return false;
    await sleep(wait, undefined, signal ? { signal } : {});
    return true;
  }
}
