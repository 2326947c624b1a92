/** Endpoints about sessions: their life, and finding them again. They are known as long as the process remembers them. */
import { listCheckpoints } from "../../checkpoints.ts";
import { signedLink } from "./download.ts";
import { refuse } from "./errors.ts";
import type { Fields } from "./fields.ts";
import { paginate } from "./listing.ts";
import type { RouteTable } from "./router.ts";
import type { ApiState, Session } from "./state.ts";

export function sessionRoutes(state: ApiState, token: string): RouteTable {
  const find = (id: string | undefined): Session =>
    state.sessions.get(id as string) ?? refuse(404, `Session ${id} not found`);
  return {
    "POST /api/v1/create_session": ({ body }) => {
      const metadata = body.optionalObject("user_metadata");
      const userMetadata = metadata ? Object.fromEntries(metadata.keys().map((key) => [key, metadata.raw(key)])) : null;
      const { id } = state.createSession({
        userMetadata,
        displayName: body.optionalString("display_name") ?? null,
        project: body.optionalString("project_id") ?? null,
      });
      const messages = { info_message: null, warning_message: null, error_message: null };
      return { type: "create_session", session_id: id, ...messages };
    },
    "POST /api/v1/session_heartbeat": ({ body }) => {
      state.session(body.string("session_id"));
      return { type: "session_heartbeat" };
    },
    "POST /api/v1/sessions/{session}/finish": ({ params, body }) => {
      const session = find(params.session);
      const reason = body.optionalObject("reason")?.optionalString("type") ?? "success";
      state.endSession(session, "finished", { reason, detail: body.optionalString("detail") ?? null });
      return undefined;
    },
    "GET /api/v1/sessions": ({ query }) => {
      const { page, cursor } = paginate([...state.sessions.keys()].reverse(), query, 20);
      return { sessions: page, cursor };
    },
    "GET /api/v1/sessions/{session}": ({ params }) => {
      const session = find(params.session);
      return {
        training_run_ids: session.models.map((model) => model.id),
        sampler_ids: session.samplers.map((sampler) => sampler.id),
        user_metadata: session.userMetadata,
        display_name: session.displayName,
        project_id: session.project,
        status: session.status,
      };
    },
    "PUT /api/v1/sessions/{session}/project": ({ params, body }) => {
      find(params.session).project = body.string("project_id");
      return undefined;
    },
    "GET /api/v1/sessions/{session}/trace_export": ({ params, origin }) => {
      const { id } = find(params.session);
      const url = signedLink(origin, token, `/api/v1/sessions/${encodeURIComponent(id)}/trace/download`);
      return { status: "ready", url, error: null };
    },
    "GET /api/v1/sessions/{session}/trace/download": ({ params }) => state.timelines.file(find(params.session).id),
    "POST /api/v1/sessions/search": ({ body }) => searchSessions(state, body),
  };
}

/** Newest first; pages by time and id. There is one owner. */
function searchSessions(state: ApiState, body: Fields): unknown {
  const limit = body.optionalInteger("limit", 1) ?? 50;
  if (limit > 200) body.reject("limit", "Input should be at most 200");
  const cursor = body.optionalObject("cursor");
  const place = (session: Session) => `${session.createdAt} ${session.id}`;
  // Times as clients write them may differ from ours in form.
  const last = cursor && {
    ms: Date.parse(cursor.string("last_created_at")),
    id: cursor.string("last_session_id"),
  };
  const isAfter = (session: Session) => {
    if (last === undefined) return true;
    const ms = Date.parse(session.createdAt);
    return ms < last.ms || (ms === last.ms && session.id < last.id);
  };
  const matches = sessionFilter(body);
  const found = [...state.sessions.values()]
    .filter((session) => matches(session) && isAfter(session))
    .sort((a, b) => (place(a) < place(b) ? 1 : -1));
  const page = found.slice(0, limit);
  const end = found.length > limit ? page.at(-1) : undefined;
  return {
    sessions: page.map((session) => describeSession(state, session)),
    next_cursor: end ? { last_created_at: end.createdAt, last_session_id: end.id } : null,
  };
}

function sessionFilter(body: Fields): (session: Session) => boolean {
  const id = body.optionalString("session_id");
  const words = body.optionalString("display_name")?.toLowerCase().split(/\s+/).filter(Boolean);
  const projects = body.has("project_ids") ? body.array("project_ids") : undefined;
  const metadata = Object.entries(body.stringMap("user_metadata") ?? {});
  const statuses = body.has("statuses") ? body.objects("statuses").map((status) => status.string("type")) : undefined;
  const isNamed = (session: Session) => {
    if (id === undefined && words === undefined) return true;
    const name = session.displayName?.toLowerCase();
    return session.id === id || (name !== undefined && words?.every((word) => name.includes(word)) === true);
  };
  return (session) =>
    isNamed(session) &&
    (projects?.includes(session.project) ?? true) &&
    (statuses?.includes(describeStatus(session)?.type ?? "") ?? true) &&
    metadata.every(([key, value]) => session.userMetadata?.[key] === value);
}

function describeStatus({ status, finish }: Session) {
  switch (status) {
    case "live":
      return { type: "active" };
    case "finished":
      return { type: "client_finished", reason: { type: finish?.reason ?? "success" }, detail: finish?.detail ?? null };
    case "expired":
      return null;
    default:
      return status satisfies never;
  }
}

function describeSession(state: ApiState, session: Session): unknown {
  const checkpoints = session.models.flatMap(({ id }) => listCheckpoints(state.settings.serverFolder, id));
  return {
    session_id: session.id,
    created_at: session.createdAt,
    owner: "local",
    project_id: session.project ?? "local",
    status: describeStatus(session),
    checkpoints_count: checkpoints.length,
    display_name: session.displayName,
    user_metadata: session.userMetadata,
    checkpoint_storage_bytes: checkpoints.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}
