/** One HTTP request through its redirects, and what its answer's head says. */
import { type Dispatcher, request } from "undici";
import type { DiagnosticCode } from "../codes.ts";
import { messageOf } from "../diagnostic.ts";
import { askedWaitMs, isRetryable } from "../retry.ts";

export const CONNECT_MS = 5_000;
const MOST_REDIRECTS = 5;

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Why a try did not succeed. */
export class Refusal {
  readonly code: DiagnosticCode;
  /** A sentence; where nobody was reached, the end of one. */
  readonly why: string;
  /** Whether it may be otherwise in a moment. */
  readonly isPassing: boolean;
  readonly afterMs: number | undefined;
  constructor(code: DiagnosticCode, why: string, isPassing: boolean, afterMs?: number) {
    this.code = code;
    this.why = why;
    this.isPassing = isPassing;
    this.afterMs = afterMs;
  }
}

export interface OpenOptions {
  readonly dispatcher: Dispatcher;
  readonly answerMs: number;
  readonly signal: AbortSignal;
  /** By default they are. */
  readonly followsRedirects?: boolean;
  /** For each address that it is led to: what one host may know, another may not. */
  readonly headersFor: (url: URL) => Readonly<Record<string, string>>;
}

/** Throws what the network does, and where redirects lead nowhere. */
export async function open(
  first: URL,
  { dispatcher, answerMs, signal, followsRedirects = true, headersFor }: OpenOptions,
): Promise<Answer> {
  let url = first;
  for (let hop = 0; hop <= MOST_REDIRECTS; hop += 1) {
    const answer = await request(url, {
      dispatcher,
      headersTimeout: answerMs,
      bodyTimeout: answerMs,
      signal,
      headers: { "user-agent": "rlcli", ...headersFor(url) },
    });
    const { location } = answer.headers;
    const isRedirect = [301, 302, 303, 307, 308].includes(answer.statusCode) && typeof location === "string";
    if (!isRedirect || !followsRedirects)
      return { status: answer.statusCode, headers: answer.headers, body: answer.body };
    await discard(answer.body);
    // Where it leads may hold a signature, so it is not shown.
    if (!URL.canParse(location, url.href)) throw new Error("it redirects to something that is no address");
    const next = new URL(location, url);
    if (!/^https?:$/.test(next.protocol) || (url.protocol === "https:" && next.protocol === "http:"))
      throw new Error(`it redirects to ${next.protocol}//${next.host}, which is not safe to follow`);
    url = next;
  }
  throw new Error(`it redirects more than ${MOST_REDIRECTS} times`);
}

/** Reads a short rest, so that the connection serves again. */
export async function discard(body: AsyncIterable<Uint8Array>): Promise<void> {
  await (body as Dispatcher.ResponseData["body"]).dump().catch(() => {});
}

export function headerOf({ headers }: Answer, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" ? value : undefined;
}

/** The byte at which a part begins; NaN where the answer does not say. */
export function rangeStart(answer: Answer): number {
  return Number(/^bytes (\d+)-/.exec(headerOf(answer, "content-range") ?? "")?.[1] ?? Number.NaN);
}

/** An answer that says neither what was asked for nor that there is none; `unreached` is its code. */
export function busyRefusal(unreached: DiagnosticCode, { status, headers }: Answer, said = ""): Refusal {
  const afterMs = askedWaitMs(headers);
  const what = status === 429 ? "it has had too many requests from here" : `it answered ${status}`;
  const wait = afterMs === undefined ? "" : ` and asks to wait ${Math.ceil(afterMs / 1000)} s`;
  return new Refusal(unreached, `${what}${said}${wait}`, isRetryable(status, headers), afterMs);
}

export function reasonOf(error: unknown, answerMs: number): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT")
    return `no answer within ${answerMs / 1000} s`;
  if (code === "UND_ERR_CONNECT_TIMEOUT") return `no connection within ${CONNECT_MS / 1000} s`;
  if (code === "UND_ERR_SOCKET") return "the connection broke";
  return messageOf(error) || code || "the connection failed";
}
