/** HTTP: one request, with its retries. It knows statuses and bytes, and nothing of what they mean. */
import { randomUUID } from "node:crypto";
import { Agent, request } from "undici";
import { isGone, reasonOf, TinkerError } from "./errors.ts";
import { Attempts, DEFAULT_RETRY, isRetryable, type RetryPolicy, retryAfterMs } from "./retry.ts";

export interface TransportOptions {
  /** With or without a path prefix and a trailing slash. */
  readonly baseUrl: string;
  /** Sent as `X-API-Key`; never logged, never part of an error. */
  readonly apiKey?: string;
  readonly retry?: Partial<RetryPolicy>;
  /** For a request that is not a long poll. */
  readonly timeoutMs?: number;
}

export interface HttpRequest {
  readonly method: "GET" | "POST" | "DELETE" | "PUT";
  /** Below `/api/v1`, with its query. */
  readonly path: string;
  readonly body?: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal | undefined;
  /** Names the future in errors. */
  readonly requestId?: string;
}

export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

const DEFAULT_TIMEOUT_MS = 60_000;
const CONNECT_TIMEOUT_MS = 5000;

export const endpointOf = ({ method, path }: HttpRequest): string => `${method} /api/v1${path}`;

export class Transport {
  readonly #agent = new Agent({ connect: { timeout: CONNECT_TIMEOUT_MS }, pipelining: 1 });
  readonly #base: string;
  readonly #apiKey: string | undefined;
  readonly #timeoutMs: number;
  readonly retry: RetryPolicy;

  constructor({ baseUrl, apiKey, retry, timeoutMs }: TransportOptions) {
    this.#base = `${baseUrl.replace(/\/+$/, "")}/api/v1`;
    this.#apiKey = apiKey;
    this.#timeoutMs = timeoutMs ?? DEFAULT_TIMEOUT_MS;
    this.retry = { ...DEFAULT_RETRY, ...retry };
  }

  /** One try. Throws a `network` error if no whole answer came, and the signal's reason if it was aborted. */
  async once(spec: HttpRequest): Promise<HttpAnswer> {
    const { method, path, body, headers, timeoutMs = this.#timeoutMs, signal, requestId } = spec;
    signal?.throwIfAborted();
    try {
      const answer = await request(this.#base + path, {
        method,
        dispatcher: this.#agent,
        body: body ?? null,
        signal: signal ?? null,
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
        headers: {
          accept: "application/json",
          ...(body ? { "content-type": "application/json" } : {}),
          ...(this.#apiKey === undefined ? {} : { "x-api-key": this.#apiKey }),
          ...headers,
        },
      });
      return { status: answer.statusCode, headers: answer.headers, body: Buffer.from(await answer.body.arrayBuffer()) };
    } catch (cause) {
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
    // One key for all tries of a call, so that a server may recognise them; GET needs none.
    const key = spec.method === "GET" ? {} : { "x-idempotency-key": `rlcli-${randomUUID()}` };
    const keyed = { ...spec, headers: { ...key, ...spec.headers } };
    for (;;) {
      let answer: HttpAnswer;
      try {
        answer = await this.once(keyed);
      } catch (error) {
        if (!(error instanceof TinkerError) || !(await attempts.again(spec.signal))) throw error;
        continue;
      }
      if (answer.status < 400) return answer;
      const isProxyRefusal = answer.status === 400 && answer.body.length === 0;
      const mayRetry = isProxyRefusal || isRetryable(answer.status, answer.headers);
      if (!mayRetry || !(await attempts.again(spec.signal, retryAfterMs(answer.headers)))) {
        throw statusError(spec, answer, mayRetry);
      }
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

function statusError(spec: HttpRequest, { status, body }: HttpAnswer, wasRetried: boolean): TinkerError {
  const reason = reasonOf(body);
  const isBusy = status < 500 || status === 503;
  const kind = wasRetried ? (isBusy ? "busy" : "failed") : isGone(status, reason) ? "gone" : "rejected";
  return new TinkerError({ kind, endpoint: endpointOf(spec), status, requestId: spec.requestId, reason });
}

function networkReason(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ? `${code} ${message}` : String(message ?? error);
}
