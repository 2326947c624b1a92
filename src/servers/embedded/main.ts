/** The life of a server's process, apart from what only the command line may touch (arguments, exit, output). */
import { randomBytes } from "node:crypto";
import { messageOf } from "../../diagnostic.ts";
import { ownIdentity } from "../../process.ts";
import type { ServerOrder, StartMessage } from "../launch.ts";
import { RUNTIME_VERSION, refuseFolder, writeRuntime, writeStopped } from "../runtime.ts";
import { startServer } from "./server.ts";

const SESSION_TIMEOUT_MS = 300_000;
/** Clients of this protocol give up after 45 s. */
const HOLD_MS = 30_000;
const BODY_LIMIT_BYTES = 64 * 1024 * 1024;

export interface ProcessHooks {
  readonly log: (text: string) => void;
  /** To whoever started the process, if still there. */
  readonly tell: (message: StartMessage) => void;
  /** Settles when the process is asked to end. */
  readonly signalled: Promise<string>;
}

/** Serves until idle or signalled. Throws RlcliError if it cannot start, any error if computation died. */
export async function runServer(order: ServerOrder, { log, tell, signalled }: ProcessHooks): Promise<void> {
  const serverRun = randomBytes(16).toString("hex");
  const token = `tml-${randomBytes(24).toString("base64url")}`;
  tell({ t: "phase", text: `loading ${order.model}` });
  const server = await startServer({
    ...order,
    serverFolder: order.folder,
    serverRun,
    token,
    sessionTimeoutMs: SESSION_TIMEOUT_MS,
    holdMs: HOLD_MS,
    idleTimeoutMs: order.idleTimeoutSeconds * 1000,
    bodyLimitBytes: BODY_LIMIT_BYTES,
    onFault: (error, what) => log(`${what} failed: ${error instanceof Error ? error.stack : messageOf(error)}`),
  });
  try {
    writeRuntime(order.folder, {
      formatVersion: RUNTIME_VERSION,
      process: ownIdentity(),
      url: server.url,
      host: order.host,
      token,
      model: order.model,
      modelFolder: order.modelFolder,
      startedAt: new Date().toISOString(),
      serverRun,
    });
  } catch (error) {
    await server.close();
    refuseFolder(order.folder)(error);
  }
  log(`serving ${order.model} at ${server.url}`);
  tell({ t: "ready" });
  const end = await Promise.race([server.ended, signalled.then((signal) => ({ reason: "signal", signal }) as const)]);
  // A dead compute thread is a crash: no marker, so that the next look at the folder says so.
  if (end.reason === "crashed") throw end.error;
  log(end.reason === "idle" ? `idle for ${order.idleTimeoutSeconds} s: stopping` : `${end.signal}: stopping`);
  await server.close();
  writeStopped(order.folder, serverRun, end.reason);
  log("stopped");
}
