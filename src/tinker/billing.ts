/** Waiting for an account to be in credit again. */
import { setTimeout as sleep } from "node:timers/promises";

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
