/** Whether, when and how long to wait before a request is tried again: one way for all servers that are asked. */
import { setTimeout as sleep } from "node:timers/promises";

export interface RetryPolicy {
  /** Tries go on until this long after the first one, or after the last that made progress. */
  readonly deadlineMs: number;
  readonly firstDelayMs: number;
  readonly maxDelayMs: number;
  /** Tries with the first one, where they are counted. */
  readonly mostTries?: number;
}

/** The longest `Retry-After` that is obeyed. */
const MAX_RETRY_AFTER_MS = 60_000;

type Headers = Readonly<Record<string, string | string[] | undefined>>;

/** Statuses after which the same request may succeed. 409 is final here: it means a true conflict. */
export function isRetryable(status: number, headers: Headers): boolean {
  const override = headers["x-should-retry"];
  if (override === "true" || override === "false") return override === "true";
  return status === 408 || status === 429 || status >= 500;
}

/** How long the answer asks to wait, as far as that is obeyed. */
export function retryAfterMs(headers: Headers): number | undefined {
  const wait = askedWaitMs(headers);
  return wait !== undefined && wait <= MAX_RETRY_AFTER_MS ? wait : undefined;
}

/** How long the answer asks to wait. */
export function askedWaitMs(headers: Headers): number | undefined {
  const ms = Number(headers["retry-after-ms"] ?? Number.NaN);
  const given = headers["retry-after"];
  const seconds = Number(given ?? Number.NaN);
  const date = typeof given === "string" && Number.isNaN(seconds) ? Date.parse(given) - Date.now() : Number.NaN;
  return [ms, seconds * 1000, date].find((value) => value > 0);
}

/** Counts the tries of one request. */
export class Attempts {
  readonly #policy: RetryPolicy;
  #startedAt = performance.now();
  #failures = 0;
  #tries = 1;

  constructor(policy: RetryPolicy) {
    this.#policy = policy;
  }

  /** Something came: deadline and delays begin anew. */
  progressed(): void {
    this.#startedAt = performance.now();
    this.#failures = 0;
  }

  /**
   * Waits before the next try; false if there have been enough, or if the deadline would pass. Full delays shrink by up to a quarter at
   * random.
   */
  async again(signal: AbortSignal | undefined, afterMs?: number): Promise<boolean> {
    const { firstDelayMs, maxDelayMs, deadlineMs, mostTries = Number.POSITIVE_INFINITY } = this.#policy;
    if (this.#tries >= mostTries) return false;
    this.#tries += 1;
    const backOff = Math.min(firstDelayMs * 2 ** this.#failures, maxDelayMs) * (0.75 + Math.random() / 4);
    this.#failures += 1;
    const wait = afterMs ?? backOff;
    if (performance.now() - this.#startedAt + wait > deadlineMs) return false;
    await sleep(wait, undefined, signal ? { signal } : {});
    return true;
  }
}
