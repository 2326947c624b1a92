/** The embedded server put together: compute thread, API, HTTP, cleaning up, and the end when nobody needs it. */
import { sweepCheckpoints } from "../checkpoints.ts";
import { listen, urlOf } from "../listen.ts";
import { accountRoutes } from "./api/account.ts";
import { downloadRoutes } from "./api/download.ts";
import { createHttpServer } from "./api/http.ts";
import { listingRoutes } from "./api/listing.ts";
import { samplingRoutes } from "./api/sampling.ts";
import { serviceRoutes } from "./api/service.ts";
import { sessionRoutes } from "./api/sessions.ts";
import { type ApiSettings, ApiState } from "./api/state.ts";
import { traced } from "./api/trace.ts";
import { trainingRoutes } from "./api/training.ts";
import { weightRoutes } from "./api/weights.ts";
import { startComputer } from "./computer.ts";

export interface ServerSettings extends ApiSettings {
  readonly token: string;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  readonly slots: number;
  /** How long without open futures and fresh heartbeats before the server ends; 0 is never. */
  readonly idleTimeoutMs: number;
  readonly bodyLimitBytes: number;
  readonly onFault: (error: unknown, what: string) => void;
}

export interface RunningServer {
  readonly url: string;
  /** Settles when the server should end: idle, or its compute thread died. */
  readonly ended: Promise<{ readonly reason: "idle" } | { readonly reason: "crashed"; readonly error: Error }>;
  /** Finishes the operation that runs, answers what it can, and closes. */
  close(): Promise<void>;
}

/** Sessions are looked through this often. */
const SWEEP_MS = 1000;
/** A heartbeat is due every 10 s; one older than this no longer keeps the server up. */
const FRESH_HEARTBEAT_MS = 60_000;

/** Loads the model and listens. Throws RL5001 to RL5004. */
export async function startServer(settings: ServerSettings): Promise<RunningServer> {
  sweepCheckpoints(settings.serverFolder);
  const { modelFolder, serverFolder, model, slots } = settings;
  const computer = await startComputer({ modelFolder, serverFolder, baseModel: model, slots });
  const state = new ApiState(settings, computer);
  const activity = { lastMs: Date.now() };
  const http = createHttpServer({
    token: settings.token,
    bodyLimitBytes: settings.bodyLimitBytes,
    onFault: settings.onFault,
    routes: {
      ...serviceRoutes(state),
      ...traced(state.timelines, { ...trainingRoutes(state), ...weightRoutes(state), ...samplingRoutes(state) }, (id) =>
        state.futures.sessionOf(id),
      ),
      ...listingRoutes(state),
      ...downloadRoutes(settings.serverFolder, settings.token),
      ...sessionRoutes(state, settings.token),
      ...accountRoutes(),
    },
  });
  http.on("request", () => {
    activity.lastMs = Date.now();
  });
  try {
    await listen(http, settings);
  } catch (error) {
    await computer.close();
    throw error;
  }
  const idle = watchIdle(state, activity, settings.idleTimeoutMs);
  return {
    url: urlOf(http, "http", settings.host),
    ended: Promise.race([
      idle.reached.then(() => ({ reason: "idle" }) as const),
      computer.crashed.then((error) => ({ reason: "crashed", error }) as const),
    ]),
    close: async () => {
      idle.stop();
      const closed = new Promise((resolve) => http.close(resolve));
      http.closeIdleConnections();
      await computer.close();
      // Answers that were ready are on their way; then what still waits is cut off.
      await new Promise((resolve) => setTimeout(resolve, 50));
      http.closeAllConnections();
      await closed;
    },
  };
}

/** Cleans up once a second, and tells when nothing has been going on for `timeoutMs`. */
function watchIdle(state: ApiState, activity: { lastMs: number }, timeoutMs: number) {
  let reach = () => {};
  const reached = new Promise<void>((resolve) => {
    reach = resolve;
  });
  const timer = setInterval(
    () => {
      const now = Date.now();
      state.sweep(now);
      const isFresh = [...state.sessions.values()].some(
        ({ status, lastSeenMs }) => status === "live" && now - lastSeenMs < FRESH_HEARTBEAT_MS,
      );
      if (isFresh || state.futures.open > 0) activity.lastMs = now;
      if (timeoutMs > 0 && now - activity.lastMs >= timeoutMs) reach();
    },
    timeoutMs > 0 ? Math.min(SWEEP_MS, Math.max(50, timeoutMs / 4)) : SWEEP_MS,
  );
  return { reached, stop: () => clearInterval(timer) };
}
