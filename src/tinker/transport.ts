/** HTTP: one request, with its retries. It knows statuses and bytes, and nothing of what they mean. */
import { randomUUID } from "node:crypto";
import { Agent, request } from "undici";
import { Attempts, isRetryable, type RetryPolicy, retryAfterMs } from "../retry.ts";
import type { HttpAnswer } from "./answer.ts";
import { BillingPause, type BillingTimes, DEFAULT_BILLING } from "./billing.ts";
import { Credential } from "./credential.ts";
import { exchangeWhole } from "./dispatch.ts";
import { isGone, reasonOf, TinkerError } from "./errors.ts";
import { type Exchange, faultName, type OnExchange } from "./exchange.ts";

export interface TransportOptions {
  /** With or without a path prefix and a trailing slash. */
  readonly baseUrl: string;
  /** Sent as `X-API-Key`; never logged, never part of an error. */
  readonly apiKey?: string;
  readonly retry?: Partial<RetryPolicy>;
  /** How calls wait for an account to be in credit again; `mostMs` is the server's to say where it says so. */
  readonly billing?: Partial<BillingTimes>;
  /** For a request that is not a long poll. */
  readonly timeoutMs?: number;
  /** For a trace. */
  readonly onExchange?: OnExchange;
}

export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE" | "PUT";
  /** Below `/api/v1`, with its query. */
  readonly path: string;
  /** Whether the path is below the base URL itself instead. */
  readonly isRoot?: boolean;
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Names the future in errors and traces. */
  readonly requestId?: string;
  /** Of the work, for traces. */
  readonly seq?: number | undefined;
  /** `all` where absent. `not busy`: 429 is the caller's to wait out. `none`: one try. */
  readonly retries?: "all" | "not busy" | "none";
}

const DEFAULT_TIMEOUT_MS = 60_000;
const DEFAULT_RETRY: RetryPolicy = { deadlineMs: 300_000, firstDelayMs: 500, maxDelayMs: 10_000 };
const CONNECT_TIMEOUT_MS = 5000;

const API = "/api/v1";

/** Without the query: it may carry what is secret, and errors are shown. */
export const endpointOf = ({ method, path, isRoot = false }: HttpRequest): string =>
  `${method} ${isRoot ? "" : API}${path.split("?")[0]}`;

export class Transport {
  readonly #agent = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS }, pipelining: 1 });
  readonly #base: string;
  readonly #credential: Credential;
  readonly #timeoutMs: number;
  readonly #onExchange: OnExchange | undefined;
  readonly retry: RetryPolicy;
  #billing: BillingTimes;

  constructor({ baseUrl, apiKey, retry, timeoutMs, billing, onExchange }: TransportOptions) {
    this.#onExchange = onExchange;
    this.#billing = { ...DEFAULT_BILLING, ...billing };
    this.#base = baseUrl.replace(/\/+$/, "");
    this.#credential = new Credential(apiKey, (key) => this.#exchange(key));
    this.#timeoutMs = timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.retry = { ...DEFAULT_RETRY, ...retry };
  }

  /** For calls that begin from now on. */
  limitBillingPause(mostMs: number): void {
    this.#billing = { ...this.#billing, mostMs };
  }

  /** The pauses of a call that begins now. */
  billingPause(): BillingPause {
    return new BillingPause(this.#billing);
  }

  /** From now on the key is exchanged for short-lived ones, which are renewed before they end. */
  exchangeCredential(): void {
    this.#credential.exchange();
  }

  async #exchange(key: string): Promise<string> {
    const spec: HttpRequest = { method: "POST", path: "/auth/token", body: Buffer.from("{}") };
    const answer = await this.#attempt(spec, key);
    if (answer.status >= 400) throw statusError(spec, answer, false);
    const { jwt } = JSON.parse(answer.body.toString()) as { jwt?: unknown };
    if (typeof jwt === "string") return jwt;
    throw new TinkerError({ kind: "failed", endpoint: endpointOf(spec), reason: "the answer has no jwt" });
  }

  /** Where and with what a JSON call goes, for a thread that must make it by itself. */
  async addressOf(path: string): Promise<{ readonly url: string; readonly headers: Readonly<Record<string, string>> }> {
    const key = await this.#credential.current();
    const headers = { "content-type": "application/json", ...(key === undefined ? {} : { "x-api-key": key }) };
    return { url: this.#base + API + path, headers };
  }

  /** One try, the `attempt`th. Throws a `network` error if no whole answer came, and the signal's reason if it was aborted. */
  async once(spec: HttpRequest, attempt = 1): Promise<HttpAnswer> {
    const answer = await this.#attempt(spec, await this.#credential.current(), attempt);
    const isStale = answer.status === 401 && /error="invalid_token"/.test(String(answer.headers["www-authenticate"]));
    if (!isStale || !this.#credential.isExchanged) return answer;
    return this.#attempt(spec, await this.#credential.renew(), attempt);
  }

  async #attempt(spec: HttpRequest, key: string | undefined, attempt = 1): Promise<HttpAnswer> {
    const { method, path, body, headers, timeoutMs = this.#timeoutMs, signal, requestId } = spec;
    signal?.throwIfAborted();
    const startedAt = performance.now();
    const tell = (outcome: { readonly answer?: HttpAnswer; readonly error?: string }) =>
      this.#onExchange?.(exchangeOf(spec, attempt, performance.now() - startedAt, outcome));
    try {
      const { origin, pathname, search } = new URL(this.#base + (spec.isRoot ? "" : API) + path);
      const options = {
        origin,
        path: pathname + search,
        method,
        body: body ?? null,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        headers: {
          accept: "application/json",
          ...(body ? { "content-type": "application/json" } : {}),
          ...(key === undefined ? {} : { "x-api-key": key }),
          ...headers,
        },
      };
      const answer = await exchangeWhole(this.#agent, options, signal);
      tell({ answer });
      return answer;
    } catch (cause) {
      tell({ error: faultName(cause, signal?.aborted ?? false) });
      signal?.throwIfAborted();
      throw new TinkerError({
        kind: "network",
        endpoint: endpointOf(spec),
        requestId,
        reason: networkReason(cause),
        cause,
      });
    }
  }

  /** Tries until an answer is final; returns it if it is a success, else throws `TinkerError`. */
  async send(spec: HttpRequest): Promise<HttpAnswer> {
    const attempts = new Attempts(this.retry);
    const billing = this.billingPause();
    // One key for all tries of a call, so that a server may recognise them; GET needs none.
    const key = spec.method === "GET" ? {} : { "x-idempotency-key": `rlcli-${randomUUID()}` };
    const keyed = { ...spec, headers: { ...key, ...spec.headers } };
    for (let attempt = 1; ; attempt += 1) {
      let answer: HttpAnswer;
      try {
        answer = await this.once(keyed, attempt);
      } catch (error) {
        if (!(error instanceof TinkerError) || !isPassing(error) || spec.retries === "none") throw error;
        if (!(await attempts.again(spec.signal, error.retryAfterMs))) throw error;
        continue;
      }
      if (answer.status < 400) return answer;
      if (answer.status === 402 && spec.retries !== "none" && (await billing.again(spec.signal))) continue;
      const isProxyRefusal = answer.status === 400 && answer.body.length === 0;
      const isLeft = spec.retries === "none" || (spec.retries === "not busy" && answer.status === 429);
      const mayRetry = !isLeft && (isProxyRefusal || isRetryable(answer.status, answer.headers));
      if (!mayRetry || !(await attempts.again(spec.signal, retryAfterMs(answer.headers)))) {
        throw statusError(spec, answer, mayRetry);
      }
    }
  }

  /**
   * The body behind a URL that the server named, as it arrives. The credential goes to the server itself only: archives
   * lie elsewhere under signed URLs.
   */
  async download(url: string, signal: AbortSignal | undefined): Promise<AsyncIterable<Uint8Array>> {
    const target = new URL(url, this.#base);
    const isOwn = target.origin === new URL(this.#base).origin;
    const key = isOwn ? await this.#credential.current() : undefined;
    const answer = await request(target, {
      dispatcher: this.#agent,
      signal: signal ?? null,
      headers: key === undefined ? {} : { "x-api-key": key },
    }).catch((cause: unknown) => {
      signal?.throwIfAborted();
      throw new TinkerError({ kind: "network", endpoint: "GET archive", reason: networkReason(cause), cause });
    });
    if (answer.statusCode === 200) return piecesOf(answer.body, signal);
    const reason = reasonOf(Buffer.from(await answer.body.arrayBuffer()));
    throw new TinkerError({ kind: "failed", endpoint: "GET archive", status: answer.statusCode, reason });
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** A connection that breaks on the way is told like one that does not come about. */
async function* piecesOf(body: AsyncIterable<Uint8Array>, signal: AbortSignal | undefined): AsyncGenerator<Uint8Array> {
  try {
    yield* body;
  } catch (cause) {
    signal?.throwIfAborted();
    throw new TinkerError({ kind: "network", endpoint: "GET archive", reason: networkReason(cause), cause });
  }
}

/** Of what a try throws: no answer, or one to the exchange of its credential, which may be another in a moment. */
const isPassing = ({ kind, status }: TinkerError): boolean =>
  kind === "network" || (status !== undefined && isRetryable(status, {}));

function exchangeOf(
  spec: HttpRequest,
  attempt: number,
  ms: number,
  { answer, error }: { readonly answer?: HttpAnswer; readonly error?: string },
): Exchange {
  const { seq, requestId, body } = spec;
  return {
    method: spec.method,
    path: endpointOf(spec).slice(spec.method.length + 1),
    attempt,
    ...(answer ? { status: answer.status } : {}),
    ...(error === undefined ? {} : { error }),
    ms: Math.round(ms * 10) / 10,
    sentBytes: body?.length ?? 0,
    receivedBytes: answer?.body.length ?? 0,
    ...(seq === undefined ? {} : { seq }),
    ...(requestId === undefined ? {} : { request: requestId }),
  };
}

function statusError(spec: HttpRequest, { status, body, headers }: HttpAnswer, wasRetried: boolean): TinkerError {
  const reason = reasonOf(body);
  const isBusy = status === 429 || (wasRetried && (status < 500 || status === 503));
  const final = isGone(status, reason) ? "gone" : "rejected";
  const kind = isBusy ? "busy" : wasRetried || status >= 500 ? "failed" : final;
  const { requestId } = spec;
  return new TinkerError({
    kind,
    endpoint: endpointOf(spec),
    status,
    requestId,
    reason,
    retryAfterMs: retryAfterMs(headers),
  });
}

function networkReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ? `${code} ${message}` : String(message ?? error);
}
