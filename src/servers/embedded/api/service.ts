/** Endpoints about the server itself, and futures. */
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
    "POST /api/v1/retrieve_futures": async ({ body, signal }) => {
      const target = body.object("target");
      const sampler = state.sampler(target.string("sampling_session_id"));
      const clone = target.optionalInteger("cloned_sampler_id") ?? 0;
      const timeout = body.optionalNumber("timeout");
      const holdMs = timeout === undefined ? settings.holdMs : Math.min(Math.max(timeout, 0) * 1000, settings.holdMs);
      const cursor = body.optionalInteger("prev_cursor") ?? 0;
      const found = await state.completionsOf(sampler, clone).after(cursor, holdMs, signal);
      return {
        completions: found.completions.map(({ requestId, ok }) => ({
          state: ok ? "finished" : "failed",
          request_id: requestId,
        })),
        cursor: found.cursor,
      };
    },
    "POST /api/v1/cancel_future": async ({ body }) => {
      await computer.run({ op: "cancel", ticket: body.string("request_id") });
      return undefined;
    },
  };
}
