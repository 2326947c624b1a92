/** One JSON request with a time limit, tried again where the other side is only busy. */
import { withDeadline } from "../../abort.ts";
import { fail, messageOf } from "../../diagnostic.ts";
import { Attempts, askedWaitMs, isRetryable } from "../../retry.ts";

export interface JsonRequest {
  readonly url: string;
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string>>;
  /** For one try. */
  readonly timeoutMs: number;
  readonly tries: number;
  /** For messages; never contains a key. */
  readonly who: string;
  readonly signal: AbortSignal;
}

const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 20_000;

/** The answer's JSON. Throws RL7103 once all tries are used, at once for a 4xx that trying again will not change. */
export async function postJson(request: JsonRequest): Promise<unknown> {
  const { who, tries, signal } = request;
  const attempts = new Attempts({
    deadlineMs: Number.POSITIVE_INFINITY,
    firstDelayMs: FIRST_PAUSE_MS,
    maxDelayMs: LONGEST_PAUSE_MS,
    mostTries: tries,
  });
  for (;;) {
    signal.throwIfAborted();
    const answer = await tryOnce(request);
    if ("value" in answer) return answer.value;
    const { reason, isPassing, retryAfterMs } = answer;
    if (!isPassing || !(await attempts.again(signal, retryAfterMs))) return fail("RL7103", `${who} ${reason}.`);
  }
}

type Tried =
  | { readonly value: unknown }
  | { readonly reason: string; readonly isPassing: boolean; readonly retryAfterMs?: number };

async function tryOnce({ url, body, headers, timeoutMs, signal }: JsonRequest): Promise<Tried> {
  let response: Response;
  let text: string;
  try {
    [response, text] = await withDeadline(timeoutMs, signal, async (limit) => {
      const answer = await fetch(url, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
        signal: limit,
      });
      return [answer, await answer.text()];
    });
  } catch (error) {
    signal.throwIfAborted();
    const isSlow = error instanceof Error && error.name === "TimeoutError";
    const cause = error instanceof Error && error.cause ? messageOf(error.cause) : messageOf(error);
    return {
      reason: isSlow ? `did not answer within ${timeoutMs / 1000} s` : `cannot be reached: ${cause}`,
      isPassing: true,
    };
  }
  if (!response.ok) {
    const { status } = response;
    const headers = Object.fromEntries(response.headers);
    const after = askedWaitMs(headers);
    return {
      reason: `answered ${status}: ${text.slice(0, 200).trim()}`,
      isPassing: isRetryable(status, headers),
      ...(after === undefined ? {} : { retryAfterMs: Math.min(after, LONGEST_PAUSE_MS) }),
    };
  }
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { reason: `answered \`${text.slice(0, 200)}\`, which is not JSON`, isPassing: false };
  }
}
