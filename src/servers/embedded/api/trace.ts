/** What a session asked for and how long it took: the timeline that `trace_export` gives. */
import { Trace, type TraceFile } from "../../../trace.ts";
import type { RouteTable } from "./router.ts";

interface Work {
  /** The call. */
  readonly what: string;
  /** The model or sampler that it is for. */
  readonly of: string;
  readonly session: string;
  readonly submittedMs: number;
  endedMs: number | undefined;
  ok: boolean;
}

/** Calls of one session that are remembered; the oldest go first. */
const MOST_CALLS = 20_000;

export class Timelines {
  readonly #works = new Map<string, Work>();
  readonly #sessions = new Map<string, string[]>();

  /** A request was taken. Told again where it is repeated. */
  submitted(requestId: string, session: string, what: string, of: string): void {
    if (this.#works.has(requestId)) return;
    const work = { what, of, session, submittedMs: Date.now(), endedMs: undefined, ok: false };
    this.#works.set(requestId, work);
    const ids = this.#sessions.get(session) ?? [];
    this.#sessions.set(session, ids);
    ids.push(requestId);
    if (ids.length > MOST_CALLS) for (const id of ids.splice(0, MOST_CALLS / 2)) this.#works.delete(id);
  }

  ended(requestId: string, ok: boolean): void {
    const work = this.#works.get(requestId);
    if (!work || work.endedMs !== undefined) return;
    work.endedMs = Date.now();
    work.ok = ok;
  }

  forget(session: string): void {
    for (const id of this.#sessions.get(session) ?? []) this.#works.delete(id);
    this.#sessions.delete(session);
  }

  /** Tracks by model and sampler; a span is from when a call was taken to when its result was there. */
  file(session: string): TraceFile {
    const trace = new Trace(session, { session });
    const works = (this.#sessions.get(session) ?? []).flatMap((id) => this.#works.get(id) ?? []);
    for (const of of new Set(works.map((work) => work.of))) {
      const own = works.filter((work) => work.of === of);
      trace.spans(
        of,
        own.map(({ what, submittedMs, endedMs, ok }) => ({
          name: what,
          from: submittedMs,
          to: endedMs ?? Date.now(),
          args: { outcome: endedMs === undefined ? "under way" : ok ? "done" : "failed" },
        })),
      );
    }
    return trace.file();
  }
}

/** The same routes; what they take is told to the timelines. */
export function traced(
  timelines: Timelines,
  routes: RouteTable,
  sessionOf: (requestId: string) => string | undefined,
): RouteTable {
  const entries = Object.entries(routes).map(([route, handler]): [string, RouteTable[string]] => [
    route,
    (request) => {
      const result = handler(request);
      const requestId = (result as { readonly request_id?: unknown } | undefined)?.request_id;
      const session = typeof requestId === "string" ? sessionOf(requestId) : undefined;
      if (session !== undefined) {
        const { model_id: model } = result as { readonly model_id?: string };
        const sampler = request.body.has("sampling_session_id")
          ? request.body.string("sampling_session_id")
          : undefined;
        const what = route.split("/").at(-1) as string;
        timelines.submitted(requestId as string, session, what, model ?? sampler ?? session);
      }
      return result;
    },
  ]);
  return Object.fromEntries(entries);
}
