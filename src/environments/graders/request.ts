/** One JSON request with a time limit, tried again where the other side is only busy. */
import { setTimeout as sleep } from "node:timers/promises";
import { withDeadline } from "../../abort.ts";
import { fail, messageOf } from "../../diagnostic.ts";

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
  let reason = "";
  for (let attempt = 0; attempt < tries; attempt++) {
    signal.throwIfAborted();
    const answer = await tryOnce(request);
    if ("value" in answer) return answer.value;
    reason = answer.reason;
    if (!answer.isPassing) break;
    const pause =
      answer.retryAfterMs ?? Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS) * (0.75 + Math.random() / 4);
    if (attempt < tries - 1) await sleep(pause, undefined, { signal });
  }
  return fail("RL7103", `${who} ${reason}.`);
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
    const after = Number(response.headers.get("retry-after"));
    return {
      reason: `answered ${status}: ${text.slice(0, 200).trim()}`,
      isPassing: status === 408 || status === 429 || status >= 500,
      ...(after > 0 ? { retryAfterMs: Math.min(after * 1000, LONGEST_PAUSE_MS) } : {}),
    };
  }
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { reason: `answered \`${text.slice(0, 200)}\`, which is not JSON`, isPassing: false };
  }
}
