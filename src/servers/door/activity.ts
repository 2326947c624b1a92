/**
 * What a front door learns of a server's use from the requests that pass: when it was last used, which sessions live, how many
 * models were made, and which saves are under way. Bodies are looked at only where they are small and say what is asked here.
 */

/** Clients send a heartbeat every 10 s; SkyRL itself drops a session 300 s after the last one. */
const SESSION_MS = 60_000;

/** Calls whose answers name a future that a stop has to wait for. */
const SAVES = new Set(["/api/v1/save_weights", "/api/v1/save_weights_for_sampler"]);
/** A look whether the server is well is not a use of it. */
const LOOKS = new Set(["/api/v1/healthz", "/"]);

export interface Usage {
  /** Sessions with a heartbeat in the last minute. */
  readonly sessions: number;
  readonly openRequests: number;
  /** Models made since the server's engine started. */
  readonly models: number;
  /** Milliseconds without a request. */
  readonly idleMs: number;
}

export class Activity {
  readonly #now: () => number;
  readonly #sessions = new Map<string, number>();
  readonly #saves = new Set<string>();
  #openRequests = 0;
  #models = 0;
  #lastMs: number;

  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
    this.#lastMs = now();
  }

  /** Futures of saves that were taken. They may be done by now. */
  get saves(): ReadonlySet<string> {
    return this.#saves;
  }

  get usage(): Usage {
    const now = this.#now();
    for (const [id, at] of this.#sessions) if (now - at > SESSION_MS) this.#sessions.delete(id);
    const idleMs = this.#openRequests > 0 ? 0 : now - this.#lastMs;
    return { sessions: this.#sessions.size, openRequests: this.#openRequests, models: this.#models, idleMs };
  }

  /** A new engine has neither models nor saves. */
  engineStarted(): void {
    this.#saves.clear();
    this.#sessions.clear();
    this.#models = 0;
    this.#lastMs = this.#now();
  }

  /** Counts a request; call the result when it is over. */
  begin(path: string): () => void {
    if (LOOKS.has(path)) return () => {};
    this.#openRequests += 1;
    this.#lastMs = this.#now();
    return () => {
      this.#openRequests -= 1;
      this.#lastMs = this.#now();
    };
  }

  /** Whether the body of a request, or of its answer, is to be shown to `learn`. */
  static wants(path: string, of: "request" | "answer"): boolean {
    if (of === "request") return path === "/api/v1/session_heartbeat" || path === "/api/v1/retrieve_future";
    return SAVES.has(path) || path === "/api/v1/create_session" || path === "/api/v1/create_model";
  }

  learn(path: string, body: Buffer): void {
    const fields = parse(body);
    const { session_id: session, request_id: request } = fields;
    if (typeof session === "string") this.#sessions.set(session, this.#now());
    if (path === "/api/v1/create_model") this.#models += 1;
    if (SAVES.has(path) && request !== undefined) this.#saves.add(String(request));
  }

  /** The client has the final answer of a future. */
  retrieved(requestBody: Buffer): void {
    const { request_id: request } = parse(requestBody);
    if (request !== undefined) this.#saves.delete(String(request));
  }
}

function parse(body: Buffer): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
  } catch {
    return {};
  }
}
