/**
 * Work that the server has taken. Submitting returns once it has a request id, so the order of calls is the order of
 * submission; `result` long-polls. A future the server has forgotten is submitted again with the same bytes.
 */

import { setTimeout as sleep } from "node:timers/promises";
import { Attempts, isRetryable, retryAfterMs } from "../retry.ts";
import { type HttpAnswer, parseJson } from "./answer.ts";
import { encodeJson } from "./encoding/json.ts";
import { isGone, isUnsupported, reasonOf, TinkerError } from "./errors.ts";
import { endpointOf, type HttpRequest, type Transport } from "./transport.ts";

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface ResultOptions extends CallOptions {
  /** Gives up, with kind `busy`, this long after waiting began. No limit where absent. */
  readonly deadlineMs?: number;
  /** Called after every poll without a result, so that a caller can say what it waits for. */
  readonly onWaiting?: (waitedMs: number, state: string | undefined) => void;
}

/** Above the 300 s for which SkyRL holds a poll. */
const POLL_TIMEOUT_MS = 330_000;
/** A server that answers "not yet" at once is not asked more often than this. */
const MIN_POLL_MS = 250;
/** How often a forgotten future is submitted again. */
const MAX_RESUBMITS = 3;

/** Builds the error for an answer that makes no sense. */
export type Fail = (reason: string, cause?: unknown) => TinkerError;

/** The answer to a submission; servers put more than `request_id` into it. */
export type Taken = Readonly<Record<string, unknown>> & { readonly request_id: string };

export interface Reading<T> {
  /** What the result may come in; JSON where absent. */
  readonly accept?: string;
  readonly decode: (answer: HttpAnswer, fail: Fail, taken: Taken) => T;
  /** How the request reaches the server: the transport where absent. */
  readonly send?: (submission: HttpRequest) => Promise<HttpAnswer>;
  /** The same work as another request, for a server that fails all of a batch for the fault of one: tried once. */
  readonly alone?: () => HttpRequest | Promise<HttpRequest> | undefined;
}

/** A result to come. */
export interface Pending<T> {
  readonly requestId: string;
  result(options?: ResultOptions): Promise<T>;
}

export class Future<T> implements Pending<T> {
  readonly #transport: Transport;
  readonly #reading: Reading<T>;
  #submission: HttpRequest;
  #taken: Taken;

  private constructor(transport: Transport, submission: HttpRequest, reading: Reading<T>, taken: Taken) {
    this.#transport = transport;
    this.#submission = submission;
    this.#reading = reading;
    this.#taken = taken;
  }

  /** Submits; resolves when the server has taken the request. */
  static async submit<T>(transport: Transport, submission: HttpRequest, reading: Reading<T>): Promise<Future<T>> {
    return new Future(transport, submission, reading, await submitRequest(transport, submission, reading));
  }

  get requestId(): string {
    return this.#taken.request_id;
  }

  async result(options: ResultOptions = {}): Promise<T> {
    try {
      return await this.#await(options);
    } catch (error) {
      const isBatchFault = error instanceof TinkerError && error.kind === "failed" && error.status === 400;
      const again = isBatchFault ? await this.#reading.alone?.() : undefined;
      if (!again) throw error;
      this.#submission = { ...again, signal: options.signal };
      await this.#submitAgain();
      return await this.#await(options);
    }
  }

  /** Says that the result is not wanted any more. False where the server has no such call, and goes on working. */
  async cancel(options: CallOptions = {}): Promise<boolean> {
    const body = encodeJson({ request_id: this.requestId });
    try {
      await this.#transport.send({ method: "POST", path: "/cancel_future", body, signal: options.signal });
      return true;
    } catch (error) {
      if (isUnsupported(error)) return false;
      throw error;
    }
  }

  async #submitAgain(): Promise<void> {
    this.#taken = await submitRequest(this.#transport, this.#submission, this.#reading);
  }

  async #await(options: ResultOptions): Promise<T> {
    const startedAt = performance.now();
    let attempts = new Attempts(this.#transport.retry);
    const billing = this.#transport.billingPause();
    let resubmits = 0;
    for (;;) {
      const polledAt = performance.now();
      const outcome = await this.#poll(options.signal);
      if (outcome.type === "answer") return this.#read(outcome.answer);
      const waitedMs = performance.now() - startedAt;
      if (options.deadlineMs !== undefined && waitedMs > options.deadlineMs) {
        throw this.#error("busy", undefined, `no result after ${Math.round(waitedMs / 1000)} s`);
      }
      if (outcome.type === "forgotten") {
        resubmits += 1;
        if (resubmits > MAX_RESUBMITS) throw outcome.error;
        this.#submission = { ...this.#submission, signal: options.signal };
        await this.#submitAgain();
      } else if (outcome.type === "unpaid") {
        if (!(await billing.again(options.signal))) throw outcome.error;
      } else if (outcome.type === "trouble") {
        if (!(await attempts.again(options.signal, outcome.afterMs))) throw outcome.error;
      } else {
        attempts = new Attempts(this.#transport.retry);
        options.onWaiting?.(waitedMs, outcome.state);
        await pause(MIN_POLL_MS - (performance.now() - polledAt), options.signal);
      }
    }
  }

  async #poll(signal: AbortSignal | undefined): Promise<PollOutcome> {
    const body = encodeJson({ request_id: this.requestId, allow_metadata_only: false });
    let answer: HttpAnswer;
    try {
      const { accept } = this.#reading;
      answer = await this.#transport.once({
        method: "POST",
        path: "/retrieve_future",
        body,
        signal,
        timeoutMs: POLL_TIMEOUT_MS,
        requestId: this.requestId,
        seq: this.#submission.seq,
        ...(accept === undefined ? {} : { headers: { accept } }),
      });
    } catch (error) {
      if (!(error instanceof TinkerError)) throw error;
      return { type: "trouble", error: this.#error("network", undefined, error.reason, error) };
    }
    return this.#judge(answer);
  }

  #judge(answer: HttpAnswer): PollOutcome {
    const { status, headers, body } = answer;
    if (status === 200) {
      const notYet = readNotYet(answer);
      if (notYet) return { type: "not yet", state: notYet.queue_state };
      return { type: "answer", answer };
    }
    if (status === 408) return { type: "not yet", state: readNotYet(answer)?.queue_state };
    const reason = reasonOf(body);
    if (status === 410 || status === 404) return { type: "forgotten", error: this.#error("gone", status, reason) };
    if (status === 402) return { type: "unpaid", error: this.#error("rejected", status, reason) };
    const isProxyRefusal = status === 400 && body.length === 0;
    if (isProxyRefusal || isRetryable(status, headers)) {
      const kind = status === 429 ? "busy" : "failed";
      return { type: "trouble", error: this.#error(kind, status, reason), afterMs: retryAfterMs(headers) };
    }
    // SkyRL reports failed work as 400 with a detail.
    throw this.#error(isGone(status, reason) ? "gone" : status === 400 ? "failed" : "rejected", status, reason);
  }

  /** A final 200: a failure of the work, or its result. */
  #read(answer: HttpAnswer): T {
    const failure = readFailure(answer);
    if (failure) {
      const kind = isGone(200, failure.error) ? "gone" : "failed";
      throw this.#error(kind, undefined, failure.error, undefined, failure.category);
    }
    const fail = (reason: string, cause?: unknown) => this.#error("failed", undefined, reason, cause);
    try {
      return this.#reading.decode(answer, fail, this.#taken);
    } catch (error) {
      if (error instanceof TinkerError) throw error;
      throw fail(`the result cannot be read: ${(error as Error).message}`, error);
    }
  }

  #error(kind: TinkerError["kind"], status: number | undefined, reason: string, cause?: unknown, category?: string) {
    const { requestId } = this;
    return new TinkerError({
      kind,
      endpoint: endpointOf(this.#submission),
      status,
      requestId,
      reason,
      cause,
      category,
    });
  }
}

type PollOutcome =
  | { readonly type: "answer"; readonly answer: HttpAnswer }
  | { readonly type: "not yet"; readonly state: string | undefined }
  | { readonly type: "trouble"; readonly error: TinkerError; readonly afterMs?: number | undefined }
  | { readonly type: "unpaid"; readonly error: TinkerError }
  | { readonly type: "forgotten"; readonly error: TinkerError };

async function submitRequest<T>(transport: Transport, submission: HttpRequest, { send }: Reading<T>): Promise<Taken> {
  const answer = await (send ? send(submission) : transport.send(submission));
  const taken = parseJson(answer) as Partial<Taken> | undefined;
  if (typeof taken?.request_id === "string" && taken.request_id !== "") return taken as Taken;
  const endpoint = endpointOf(submission);
  throw new TinkerError({ kind: "failed", endpoint, status: answer.status, reason: "the answer has no request_id" });
}

/** Long results are not parsed twice to look for the short forms that are no results. */
const SHORT = 10_000;

function shortJson(answer: HttpAnswer): Record<string, unknown> | undefined {
  if (answer.body.length > SHORT) return undefined;
  const value = parseJson(answer);
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
}

function readNotYet(answer: HttpAnswer): { queue_state?: string } | undefined {
  const value = shortJson(answer);
  const isNotYet = value?.type === "try_again" || value?.status === "complete_metadata";
  return isNotYet || answer.status === 408 ? (value as { queue_state?: string } | undefined) : undefined;
}

function readFailure(answer: HttpAnswer): { error: string; category?: string } | undefined {
  const value = shortJson(answer);
  return typeof value?.error === "string" ? (value as { error: string; category?: string }) : undefined;
}

async function pause(ms: number, signal: AbortSignal | undefined): Promise<void> {
  if (ms <= 0) return;
  await sleep(ms, undefined, signal ? { signal } : {});
}
