/**
 * Signals for the length of some work. `AbortSignal.any` does not do for them: in Node 20 it holds its sources weakly, so that
 * `AbortSignal.any([AbortSignal.timeout(ms), …])` never fires where the timeout is collected before its time
 * (nodejs/node#57736), and it leaves listeners at a signal that outlives the work.
 */

/** The longest that a timer of Node can wait, in milliseconds; a longer one would fire at once. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Does `work` with a controller of its own, which aborts with `signal` too, for its reason. Nothing stays at `signal`. */
export async function withStop<T>(
  signal: AbortSignal | undefined,
  work: (stop: AbortController) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const follow = (): void => stop.abort(signal?.reason);
  if (signal?.aborted) follow();
  else signal?.addEventListener("abort", follow, { once: true });
  try {
    return await work(stop);
  } finally {
    signal?.removeEventListener("abort", follow);
  }
}

/**
 * Does `work` under a signal that aborts with `signal`, or after `limitMs` with a `TimeoutError` as that of
 * `AbortSignal.timeout`. What `work` throws then is what the caller gets.
 */
export function withDeadline<T>(
  limitMs: number,
  signal: AbortSignal | undefined,
  work: (limit: AbortSignal) => Promise<T>,
): Promise<T> {
  return withStop(signal, async (stop) => {
    const late = (): void => stop.abort(new DOMException(`no end within ${limitMs} ms`, "TimeoutError"));
    const timer = setTimeout(late, Math.min(limitMs, LONGEST_TIMER_MS));
    try {
      return await work(stop.signal);
    } finally {
      clearTimeout(timer);
    }
  });
}
