/** How long a request is tried: until a deadline, which every piece of progress moves on, with pauses that grow. */
import type { DiagnosticCode } from "../codes.ts";
import { type DiagnosticOptions, fail, RlcliError } from "../diagnostic.ts";
import { Attempts } from "../retry.ts";
import { Refusal, reasonOf } from "./request.ts";

export interface RequestTimes {
  /** For one answer's head, and for a pause within its body. */
  readonly answerMs: number;
  /** For a request with all its tries. */
  readonly deadlineMs: number;
  readonly firstPauseMs: number;
}

const LONGEST_PAUSE_MS = 10_000;

export const DEFAULT_TIMES: RequestTimes = { answerMs: 10_000, deadlineMs: 30_000, firstPauseMs: 500 };

/** Tries without an answer after which a plan is told, rather than kept waiting. What has begun to come is tried until the deadline. */
export const MOST_SILENT_TRIES = 3;

export interface PatienceOptions {
  readonly times: RequestTimes;
  readonly signal: AbortSignal;
  readonly place?: DiagnosticOptions | undefined;
  /** What is asked for, for messages. */
  readonly what: string;
  /** The code of "did not answer". */
  readonly unreached: DiagnosticCode;
  readonly mostSilentTries: number;
}

export class Patience {
  readonly #options: PatienceOptions;
  readonly #attempts: Attempts;
  #silent = 0;
  #hasProgressed = false;

  constructor(options: PatienceOptions) {
    this.#options = options;
    const { deadlineMs, firstPauseMs } = options.times;
    this.#attempts = new Attempts({ deadlineMs, firstDelayMs: firstPauseMs, maxDelayMs: LONGEST_PAUSE_MS });
  }

  /** Something came: what fails from now on is counted anew. */
  progressed(): void {
    this.#attempts.progressed();
    this.#hasProgressed = true;
  }

  /** Returns when it is time to try again after an answer that refuses; fails with its code where there is no use or no time. */
  async refused(refusal: Refusal): Promise<void> {
    this.#silent = 0;
    await this.#pause(refusal);
  }

  /** The same after something was thrown. What is no fault of the network is thrown on, as is the reason to stop. */
  async broke(error: unknown): Promise<void> {
    const { signal, times, unreached, mostSilentTries } = this.#options;
    signal.throwIfAborted();
    if (error instanceof RlcliError || error instanceof TypeError || error instanceof RangeError) throw error;
    const isPassing = this.#hasProgressed || this.#silent + 1 < mostSilentTries;
    this.#silent += 1;
    await this.#pause(new Refusal(unreached, reasonOf(error, times.answerMs), isPassing));
  }

  async #pause({ code, why, isPassing, afterMs }: Refusal): Promise<void> {
    const { signal, what, unreached, place } = this.#options;
    if (isPassing && (await this.#attempts.again(signal, afterMs))) return;
    fail(code, code === unreached ? `${what}: ${why}.` : why, place);
  }
}

/** Tries until there is a result, or as `Patience` fails. */
export async function persistently<T>(
  options: PatienceOptions,
  attempt: (progressed: () => void) => Promise<T | Refusal>,
): Promise<T> {
  const patience = new Patience(options);
  for (;;) {
    options.signal.throwIfAborted();
    let result: T | Refusal;
    try {
      result = await attempt(() => patience.progressed());
    } catch (error) {
      await patience.broke(error);
      continue;
    }
    if (!(result instanceof Refusal)) return result;
    await patience.refused(result);
  }
}
