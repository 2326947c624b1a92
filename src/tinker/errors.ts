/** The one error of the client. It names the endpoint, the request and the server's own words, and never a credential. */

/**
 * `network`: no answer came. `busy`: the server kept saying later. `gone`: the session, model or future does not exist
 * any more, so its work has to be done anew elsewhere. `rejected`: a 4xx, the request itself is wrong. `failed`: the
 * request was taken and its work failed, or the answer is not what the protocol says.
 */
export type TinkerErrorKind = "network" | "busy" | "gone" | "rejected" | "failed";

interface TinkerErrorFields {
  readonly kind: TinkerErrorKind;
  /** `POST /api/v1/optim_step` */
  readonly endpoint: string;
  readonly status?: number | undefined;
  /** The future, once the server has named one. */
  readonly requestId?: string | undefined;
  /** The server's words, or the network's. */
  readonly reason: string;
  readonly category?: string | undefined;
  /** How long the server asked to wait, where it did. */
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

const WHAT: Readonly<Record<TinkerErrorKind, string>> = {
  network: "got no answer",
  busy: "was put off until the deadline",
  gone: "addresses something that is gone",
  rejected: "was refused",
  failed: "failed",
};

export class TinkerError extends Error {
  readonly kind: TinkerErrorKind;
  readonly endpoint: string;
  readonly status: number | undefined;
  readonly requestId: string | undefined;
  readonly reason: string;
  readonly category: string | undefined;
  readonly retryAfterMs: number | undefined;

  constructor(fields: TinkerErrorFields) {
    const { kind, endpoint, status, requestId, reason } = fields;
    const about = [status === undefined ? "" : `HTTP ${status}`, requestId === undefined ? "" : `request ${requestId}`];
    const where = about.filter((part) => part !== "").join(", ");
    super(`${endpoint} ${WHAT[kind]}${where ? ` (${where})` : ""}: ${reason}`, { cause: fields.cause });
    this.name = "TinkerError";
    this.kind = kind;
    this.endpoint = endpoint;
    this.status = status;
    this.requestId = requestId;
    this.reason = reason;
    this.category = fields.category;
    this.retryAfterMs = fields.retryAfterMs;
  }
}

/** Most characters of a server's words that are kept. */
const REASON_LENGTH = 2000;

/**
 * What an error body says: `detail` as text, or as a list of validation faults by place (their `input`, which may echo
 * a whole batch, is left out); any other body as it is.
 */
export function reasonOf(body: Uint8Array): string {
  const text = new TextDecoder().decode(body);
  try {
    const { detail, error } = JSON.parse(text) as { detail?: unknown; error?: unknown };
    const said = detail ?? error;
    if (typeof said === "string") return said.slice(0, REASON_LENGTH);
    if (Array.isArray(said)) {
      const faults = said as readonly { loc?: readonly unknown[]; msg?: string }[];
      return faults
        .map((f) => `${(f.loc ?? []).join(".")}: ${f.msg ?? "invalid"}`)
        .join("; ")
        .slice(0, REASON_LENGTH);
    }
  } catch {
    // Not JSON: SkyRL's uncaught exceptions and proxies answer in plain text.
  }
  return text.trim().slice(0, REASON_LENGTH) || "no explanation";
}

/** Whether a final answer means that the session, model or future is gone rather than that the request is wrong. */
export function isGone(status: number, reason: string): boolean {
  if (status === 410) return true;
  if (status === 404) return /^(model|session|sampling session|sampler|future)\b.*\bnot found/i.test(reason);
  // SkyRL tells of an expired session only through the failure of the work: section 1.5.
  return /\bmodel\b.*\b(not loaded|unloaded|expired)\b|\bsession\b.*\bexpired\b/i.test(reason);
}

/** Whether an error says that the server has no such call, rather than no such thing. */
export function isUnsupported(error: unknown): boolean {
  if (!(error instanceof TinkerError)) return false;
  // An unknown route is FastAPI's bare "Not Found"; an unknown id is named.
  return error.status === 405 || error.status === 501 || (error.status === 404 && /^not found\.?$/i.test(error.reason));
}
