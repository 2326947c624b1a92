/** What crossed the wire, told without what was said: no bodies, no headers, no key, no query. */

/** One try of a request, once it is over. */
export interface Exchange {
  readonly method: string;
  /** Without its query. */
  readonly path: string;
  /** From 1, over the tries of one request. */
  readonly attempt: number;
  /** Of the answer; absent where none came. */
  readonly status?: number;
  /** Why none came: the code of a network error, or `aborted`. */
  readonly error?: string;
  /** Milliseconds until the whole answer was there, or the try failed. */
  readonly ms: number;
  /** Bytes of the bodies, as sent. */
  readonly sentBytes: number;
  readonly receivedBytes: number;
  /** The `seq_id` of the work that is submitted or waited for, where it has one. */
  readonly seq?: number;
  /** The `request_id` of the work that is waited for. */
  readonly request?: string;
}

/** Called at the end of every try. It must not throw. */
export type OnExchange = (exchange: Exchange) => void;

/** A short name for why no answer came, without the words of the error: those may hold an address with a password. */
export function faultName(error: unknown, isAborted: boolean): string {
  if (isAborted) return "aborted";
  const { code, name } = error as { readonly code?: unknown; readonly name?: unknown };
  return typeof code === "string" ? code : String(name ?? "error");
}
