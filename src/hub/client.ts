/**
 * HTTP of a Hugging Face hub or a mirror of it: metadata with a deadline, so that a plan never hangs, and files as streams. The
 * token goes to the hub itself only, never to where it redirects, and into no message.
 */
import { Agent, type Dispatcher, request } from "undici";
import { type DiagnosticOptions, fail, messageOf, RlcliError } from "../diagnostic.ts";
import { Attempts, askedWaitMs, isRetryable } from "../retry.ts";
import { withoutCredentials } from "../url.ts";
import type { HubSettings } from "./settings.ts";

export interface HubTimes {
  /** For one answer's head, and for a pause within its body. */
  readonly answerMs: number;
  /** For a request with all its tries. */
  readonly deadlineMs: number;
  readonly firstPauseMs: number;
}

const DEFAULT_TIMES: HubTimes = { answerMs: 10_000, deadlineMs: 30_000, firstPauseMs: 500 };
const CONNECT_MS = 5_000;
const LONGEST_PAUSE_MS = 10_000;
/** Tries without an answer after which a plan is told, rather than kept waiting. Downloads go on until the deadline. */
const MOST_SILENT_TRIES = 3;
const MOST_REDIRECTS = 5;
/** Longest answer that is read into memory. */
const MOST_BYTES = 64 * 2 ** 20;

export interface HubAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: AsyncIterable<Uint8Array>;
}

export class HubClient {
  readonly settings: HubSettings;
  readonly #times: HubTimes;
  readonly #agent: Agent;

  constructor(settings: HubSettings, times: Partial<HubTimes> = {}) {
    this.settings = settings;
    this.#times = { ...DEFAULT_TIMES, ...times };
    this.#agent = new Agent({ connect: { timeout: CONNECT_MS } });
  }

  /** JSON below the endpoint. Fails with RL6020 (not reached in time), RL6021 (refused) or RL6022 (not there). */
  async json(path: string, options: RequestOptions): Promise<unknown> {
    const text = (await this.bytes(path, options)).toString();
    try {
      return JSON.parse(text);
    } catch {
      return fail(
        "RL6020",
        `${this.settings.endpoint}${path} answered with something that is not JSON.`,
        options.place,
      );
    }
  }

  /** A small file or answer, whole. Fails as `json` does. */
  async bytes(path: string, options: RequestOptions): Promise<Buffer> {
    return this.#tries(path, options, MOST_SILENT_TRIES, async () => {
      const answer = await this.#open(path, {}, options.signal);
      if (answer.status >= 400) return this.#refused(path, answer);
      const chunks: Uint8Array[] = [];
      let length = 0;
      for await (const chunk of answer.body) {
        chunks.push(chunk);
        length += chunk.length;
        if (length > MOST_BYTES) throw new Error(`it is longer than ${MOST_BYTES} bytes`);
      }
      return Buffer.concat(chunks);
    });
  }

  /**
   * A file from a byte on, as it arrives: `take` is handed the first byte that comes (0 where the server begins anew) and
   * the bytes, and may be called again after a fault, from `from()` on. Fails as `json` does.
   */
  async stream(
    path: string,
    from: () => number,
    take: (start: number, body: AsyncIterable<Uint8Array>) => Promise<void>,
    options: RequestOptions,
  ): Promise<void> {
    return this.#tries(path, options, Number.POSITIVE_INFINITY, async (progressed) => {
      const start = from();
      const answer = await this.#open(path, start > 0 ? { range: `bytes=${start}-` } : {}, options.signal);
      // Nothing is left of it.
      if (answer.status === 416 && start > 0) {
        await discard(answer.body);
        return;
      }
      if (answer.status >= 400) return this.#refused(path, answer);
      const isRest = answer.status === 206 && rangeStart(answer) === start;
      if (answer.status === 206 && !isRest) throw new Error("it sent another part than it was asked for");
      try {
        await take(isRest ? start : 0, answer.body);
      } finally {
        if (from() > start) progressed();
      }
    });
  }

  /** One request through its redirects. */
  async #open(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<HubAnswer> {
    const { endpoint, token } = this.settings;
    let url = new URL(endpoint + path);
    const { origin } = url;
    for (let hop = 0; hop <= MOST_REDIRECTS; hop += 1) {
      const answer = await request(url, {
        dispatcher: this.#agent,
        headersTimeout: this.#times.answerMs,
        bodyTimeout: this.#times.answerMs,
        signal,
        headers: {
          "user-agent": "rlcli",
          ...headers,
          ...(token !== undefined && url.origin === origin ? { authorization: `Bearer ${token}` } : {}),
        },
      });
      const { location } = answer.headers;
      if (![301, 302, 303, 307, 308].includes(answer.statusCode) || typeof location !== "string")
        return { status: answer.statusCode, headers: answer.headers, body: answer.body };
      await discard(answer.body);
      if (!URL.canParse(location, url.href))
        throw new Error(`it redirects to \`${withoutCredentials(location)}\`, which is no address`);
      url = new URL(location, url);
    }
    throw new Error(`it redirects more than ${MOST_REDIRECTS} times`);
  }

  /** Tries until the deadline, which every piece of progress moves on. */
  async #tries<T>(
    path: string,
    { signal, place }: RequestOptions,
    mostSilentTries: number,
    attempt: (progressed: () => void) => Promise<T | Refusal>,
  ): Promise<T> {
    const { deadlineMs, firstPauseMs } = this.#times;
    const attempts = new Attempts({ deadlineMs, firstDelayMs: firstPauseMs, maxDelayMs: LONGEST_PAUSE_MS });
    let silent = 0;
    for (;;) {
      signal.throwIfAborted();
      let refusal: Refusal;
      try {
        const result = await attempt(() => attempts.progressed());
        if (!(result instanceof Refusal)) return result;
        refusal = result;
        silent = 0;
      } catch (error) {
        signal.throwIfAborted();
        if (error instanceof RlcliError || error instanceof TypeError || error instanceof RangeError) throw error;
        refusal = new Refusal("RL6020", reasonOf(error, this.#times.answerMs), silent + 1 < mostSilentTries);
        silent += 1;
      }
      if (!refusal.isPassing || !(await attempts.again(signal, refusal.afterMs))) {
        const what = `${this.settings.endpoint}${path}`;
        fail(refusal.code, refusal.code === "RL6020" ? `${what}: ${refusal.why}.` : refusal.why, place);
      }
    }
  }

  /** What an answer of 400 or more means to a user. */
  async #refused(path: string, { status, headers, body }: HubAnswer): Promise<Refusal> {
    await discard(body);
    const { endpoint, token } = this.settings;
    const id = /^\/(?:api\/)?datasets\/([^/]+\/[^/]+)/.exec(path)?.[1] ?? path;
    const code = String(headers["x-error-code"] ?? "");
    if (status === 401 || status === 403) {
      const isGated = code === "GatedRepo";
      const terms = `Accept its terms at ${endpoint}/datasets/${id} with the account whose token is in HF_TOKEN`;
      const why = isGated ? "is given only to those who asked for it" : "is private, or there is none of that name";
      const mend = isGated ? terms : "Check the name, and give a token that may read it in HF_TOKEN";
      const have = token === undefined ? "none is set now" : "the one that is set now may not";
      return new Refusal("RL6021", `The dataset ${id} ${why}. ${mend} (${have}).`, false);
    }
    if (status === 404) {
      const what = code === "RevisionNotFound" ? `no such revision of the dataset ${id}` : `no dataset ${id}`;
      const isFile = code === "EntryNotFound" || path.includes("/resolve/");
      return new Refusal("RL6022", `${endpoint} has ${isFile ? `no file ${path}` : what}. Check the name.`, false);
    }
    const after = askedWaitMs(headers);
    const said = status === 429 ? "it has had too many requests from here" : `it answered ${status}`;
    const wait = after === undefined ? "" : ` and asks to wait ${Math.ceil(after / 1000)} s`;
    return new Refusal("RL6020", `${said}${wait}`, isRetryable(status, headers), after);
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

export interface RequestOptions {
  readonly signal: AbortSignal;
  /** Where diagnostics belong. */
  readonly place?: DiagnosticOptions;
}

/** Why a try did not succeed. */
class Refusal {
  readonly code: "RL6020" | "RL6021" | "RL6022";
  readonly why: string;
  /** Whether it may be otherwise in a moment. */
  readonly isPassing: boolean;
  readonly afterMs: number | undefined;
  constructor(code: Refusal["code"], why: string, isPassing: boolean, afterMs?: number) {
    this.code = code;
    this.why = why;
    this.isPassing = isPassing;
    this.afterMs = afterMs;
  }
}

async function discard(body: AsyncIterable<Uint8Array>): Promise<void> {
  await (body as Dispatcher.ResponseData["body"]).dump().catch(() => {});
}

function rangeStart({ headers }: HubAnswer): number {
  return Number(/^bytes (\d+)-/.exec(String(headers["content-range"]))?.[1] ?? Number.NaN);
}

function reasonOf(error: unknown, answerMs: number): string {
  const { code } = error as NodeJS.ErrnoException;
  if (code === "UND_ERR_HEADERS_TIMEOUT" || code === "UND_ERR_BODY_TIMEOUT")
    return `no answer within ${answerMs / 1000} s`;
  if (code === "UND_ERR_CONNECT_TIMEOUT") return `no connection within ${CONNECT_MS / 1000} s`;
  if (code === "UND_ERR_SOCKET") return "the connection broke";
  return messageOf(error) || code || "the connection failed";
}
