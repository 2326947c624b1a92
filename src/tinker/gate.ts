/**
 * Sampling's brake. A server that answers 429 means "slow down" for all samples of a client: they pause together, and
 * for a while after only few are submitted at a time. The same request, with its number, is then sent again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { TinkerError } from "./errors.ts";

export interface GateTimes {
  /** Pause after a 429 without Retry-After, for a prompt of ordinary size and for a large one. */
  readonly pauseMs: number;
  readonly largePauseMs: number;
  /** How long after a pause submissions stay few. */
  readonly cautionMs: number;
  /** A sample is put off no longer than this. */
  readonly deadlineMs: number;
}

const DEFAULT_GATE: GateTimes = {
  pauseMs: 1000,
  largePauseMs: 5000,
  cautionMs: 10_000,
  deadlineMs: 7_200_000,
};

const MOST_SUBMISSIONS = 400;
const MOST_WHEN_CAUTIOUS = 10;
/** A prompt with a larger body counts as large. */
const LARGE_BODY_BYTES = 128 * 1024;

export class SamplingGate {
  readonly #times: GateTimes;
  #pausedUntil = 0;
  #cautiousUntil = 0;
  #running = 0;
  #waiting: (() => void)[] = [];

  constructor(times: Partial<GateTimes> = {}) {
    this.#times = { ...DEFAULT_GATE, ...times };
  }

  /** Submits when there is room; 429 is waited out, everything else is the caller's. */
  async run<T>(bodyBytes: number, signal: AbortSignal | undefined, submit: () => Promise<T>): Promise<T> {
    const startedAt = performance.now();
    for (;;) {
      await this.#enter(signal);
      try {
        return await submit();
      } catch (error) {
        if (!(error instanceof TinkerError) || error.status !== 429) throw error;
        if (performance.now() - startedAt > this.#times.deadlineMs) throw error;
        this.#pause(error.retryAfterMs ?? this.#pauseFor(bodyBytes));
      } finally {
        this.#leave();
      }
    }
  }

  #pauseFor(bodyBytes: number): number {
    return bodyBytes <= LARGE_BODY_BYTES ? this.#times.pauseMs : this.#times.largePauseMs;
  }

  #pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + ms);
    this.#cautiousUntil = this.#pausedUntil + this.#times.cautionMs;
  }

  async #enter(signal: AbortSignal | undefined): Promise<void> {
    for (;;) {
      signal?.throwIfAborted();
      const now = performance.now();
      if (now < this.#pausedUntil) await sleep(this.#pausedUntil - now, undefined, signal ? { signal } : {});
      else if (this.#running < (now < this.#cautiousUntil ? MOST_WHEN_CAUTIOUS : MOST_SUBMISSIONS)) break;
      else await this.#turn(signal);
    }
    this.#running += 1;
  }

  /** Resolves when a submission has ended, or at an abort. */
  #turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve) => {
      const wake = () => {
        signal?.removeEventListener("abort", wake);
        resolve();
      };
      signal?.addEventListener("abort", wake, { once: true });
      this.#waiting.push(wake);
    });
  }

  #leave(): void {
    this.#running -= 1;
    const all = this.#waiting;
    this.#waiting = [];
    for (const wake of all) wake();
  }
}
