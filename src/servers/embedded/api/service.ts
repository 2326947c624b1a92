/** Endpoints about the server itself, sessions and futures. */
import { encodeOutcome } from "./encode.ts";
import { refuse } from "./errors.ts";
import { encodeProtobuf } from "./proto.ts";
import type { RouteTable } from "./router.ts";
import type { ApiState } from "./state.ts";

export function serviceRoutes(state: ApiState): RouteTable {
  const { settings, computer, futures } = state;
  const names = [...new Set([settings.model, settings.modelFolder])];
  return {
    "GET /api/v1/healthz": () => ({ status: "ok", serverRun: settings.serverRun }),
    "POST /api/v1/client/config": () => ({ pjwt_auth_enabled: false }),
    "POST /api/v1/client/dynamic_config": () => ({
      refresh_interval_sec: 300,
      sample_cancel_enabled: false,
      sample_cancel_max_batch_size: 64,
    }),
    "GET /api/v1/get_server_capabilities": () => ({
      supported_models: names.map((name) => ({
        model_name: name,
        max_context_length: computer.facts.contextLength,
        trainable: true,
        sampleable: true,
      })),
    }),
    // Accepted and dropped: events may hold request headers and stack traces.
    "POST /api/v1/telemetry": () => ({ status: "accepted" }),

    "POST /api/v1/create_session": ({ body }) => {
      const metadata = body.has("user_metadata") ? body.object("user_metadata") : undefined;
      const userMetadata = metadata ? Object.fromEntries(metadata.keys().map((key) => [key, metadata.raw(key)])) : null;
      const session = state.createSession(userMetadata, body.optionalString("display_name") ?? null);
      return {
        type: "create_session",
        session_id: session.id,
        info_message: null,
        warning_message: null,
        error_message: null,
      };
    },
    "POST /api/v1/session_heartbeat": ({ body }) => {
      state.session(body.string("session_id"));
      return { type: "session_heartbeat" };
    },
    "POST /api/v1/sessions/{session}/finish": ({ params }) => {
      const session = state.sessions.get(params.session as string);
      if (session === undefined) state.session(params.session as string);
      else state.endSession(session, "finished");
      return undefined;
    },

    "POST /api/v1/retrieve_future": async ({ body, signal, acceptsProtobuf }) => {
      const requestId = body.string("request_id");
      const outcome = await futures.wait(requestId, settings.holdMs, signal);
      if (outcome === "unknown") refuse(404, `Future ${requestId} not found`);
      if (outcome === "gone") refuse(410, `The result of ${requestId} is no longer kept.`);
      if ("pending" in outcome) {
        const reason = outcome.reason === undefined ? {} : { queue_state_reason: outcome.reason };
        return { type: "try_again", request_id: requestId, queue_state: "active", ...reason };
      }
      const bytes = outcome.ok && acceptsProtobuf ? encodeProtobuf(outcome.result) : undefined;
      return bytes ?? encodeOutcome(outcome);
    },
  };
}
