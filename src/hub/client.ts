/**
 * HTTP of a Hugging Face hub or a mirror of it: metadata with a deadline, so that a plan never hangs, and files as streams. The
 * token goes to the hub itself only, never to where it redirects, and into no message.
 */
import { Agent } from "undici";
import { type DiagnosticOptions, fail } from "../diagnostic.ts";
import { DEFAULT_TIMES, MOST_SILENT_TRIES, persistently, type RequestTimes } from "../remote/patience.ts";
import { type Answer, busyRefusal, CONNECT_MS, discard, open, Refusal, rangeStart } from "../remote/request.ts";
import type { HubSettings } from "./settings.ts";

/** Longest answer that is read into memory. */
const MOST_BYTES = 64 * 2 ** 20;

export class HubClient {
  readonly settings: HubSettings;
  readonly #times: RequestTimes;
  readonly #agent: Agent;

  constructor(settings: HubSettings, times: Partial<RequestTimes> = {}) {
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

  #open(path: string, headers: Record<string, string>, signal: AbortSignal): Promise<Answer> {
    const { endpoint, token } = this.settings;
    const { origin } = new URL(endpoint);
    const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
    return open(new URL(endpoint + path), {
      dispatcher: this.#agent,
      answerMs: this.#times.answerMs,
      signal,
      headersFor: (url) => ({ ...headers, ...(url.origin === origin ? authorization : {}) }),
    });
  }

  #tries<T>(
    path: string,
    { signal, place }: RequestOptions,
    mostSilentTries: number,
    attempt: (progressed: () => void) => Promise<T | Refusal>,
  ): Promise<T> {
    const what = `${this.settings.endpoint}${path}`;
    const options = { times: this.#times, signal, place, what, unreached: "RL6020", mostSilentTries } as const;
    return persistently(options, attempt);
  }

  /** What an answer of 400 or more means to a user. */
  async #refused(path: string, answer: Answer): Promise<Refusal> {
    const { status, headers, body } = answer;
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
    return busyRefusal("RL6020", answer);
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
