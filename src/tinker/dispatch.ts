/**
 * One exchange over a dispatcher of undici, its answer's body whole. `request` of undici gives the body as a stream, which for answers of
 * a few hundred bytes is most of what an exchange costs the client; here the pieces are only collected.
 */
import type { Dispatcher } from "undici";
import type { HttpAnswer } from "./answer.ts";

export type WholeOptions = Pick<Dispatcher.DispatchOptions, "path" | "method" | "headersTimeout" | "bodyTimeout"> & {
  readonly origin: string;
  readonly body: Uint8Array | null;
  readonly headers: Record<string, string>;
};

/** Rejects with undici's error where no whole answer comes, and with the signal's reason once it is aborted, also before the request is sent. */
export function exchangeWhole(
  dispatcher: Dispatcher,
  options: WholeOptions,
  signal: AbortSignal | undefined,
): Promise<HttpAnswer> {
  signal?.throwIfAborted();
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let status = 0;
    let headers: HttpAnswer["headers"] = {};
    let controller: Dispatcher.DispatchController | undefined;
    const abort = () => {
      controller?.abort(signal?.reason);
      reject(signal?.reason);
    };
    signal?.addEventListener("abort", abort, { once: true });
    const over = () => signal?.removeEventListener("abort", abort);
    dispatcher.dispatch(options, {
      // Again where undici sends it once more on another connection.
      onRequestStart(started) {
        controller = started;
        if (signal?.aborted) started.abort(signal.reason);
      },
      onResponseStart(_, code, received) {
        // Not of the answer: 100 and 103 come before it.
        if (code >= 200) [status, headers] = [code, received];
      },
      onResponseData(_, piece) {
        pieces.push(piece);
      },
      onResponseEnd() {
        over();
        resolve({ status, headers, body: pieces.length === 1 ? (pieces[0] as Buffer) : Buffer.concat(pieces) });
      },
      onResponseError(_, error) {
        over();
        reject(error);
      },
    });
  });
}
