/** Starting a server's process, and its log. */
import { spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Diagnostic, diagnostic, messageOf, RlcliError } from "../diagnostic.ts";
import { type EntryName, entryPath } from "../entry.ts";

/** What an embedded server's process is told, as JSON in its only argument. */
export interface ServerOrder {
  readonly folder: string;
  readonly model: string;
  readonly modelFolder: string;
  readonly host: string;
  readonly port: number;
  readonly idleTimeoutSeconds: number;
  readonly slots: number;
}

/** A server's process to start. */
export interface Launch {
  readonly entry: EntryName;
  /** In messages: `embedded server`. */
  readonly what: string;
  readonly folder: string;
  /** Given to it as JSON. */
  readonly order: object;
}

/** What the server's process says to whoever started it. */
export type StartMessage =
  | { readonly t: "phase"; readonly text: string }
  | { readonly t: "ready" }
  | { readonly t: "failed"; readonly diagnostics: readonly Diagnostic[] };

const LOG_TAIL_LINES = 20;

export function logPath(folder: string): string {
  return join(folder, "log.txt");
}

export function logTail(folder: string): string {
  try {
    const lines = readFileSync(logPath(folder), "utf8").trimEnd().split("\n");
    return lines.slice(-LOG_TAIL_LINES).join("\n");
  } catch {
    return "";
  }
}

/**
 * Starts the process, detached and in its own process group, and waits until it says that it is ready. Throws RlcliError
 * with what the process said or, if it said nothing, with the end of its log. An abort kills it.
 */
export async function launch(
  { entry, what, folder, order }: Launch,
  { signal, onPhase }: { readonly signal?: AbortSignal; readonly onPhase?: (text: string) => void },
): Promise<void> {
  signal?.throwIfAborted();
  const log = openSync(logPath(folder), "a", 0o600);
  const child = spawn(process.execPath, [entryPath(entry), JSON.stringify(order)], {
    detached: true,
    stdio: ["ignore", log, log, "ipc"],
  });
  closeSync(log);
  const abort = () => child.kill("SIGKILL");
  signal?.addEventListener("abort", abort);
  try {
    await new Promise<void>((ready, failed) => {
      child.on("error", (error) => failed(startFailure({ folder, what }, messageOf(error))));
      child.on("exit", (code, killedBy) => {
        const end = (): void =>
          failed(startFailure({ folder, what }, `its process ended with ${killedBy ?? `code ${code}`}`));
        // What it said last may still be in the channel, whose end comes behind it.
        if (child.connected) child.once("disconnect", end);
        else end();
      });
      child.on("message", (message: StartMessage) => {
        if (message.t === "phase") onPhase?.(message.text);
        else if (message.t === "ready") ready();
        else failed(new RlcliError(message.diagnostics));
      });
    });
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    signal?.removeEventListener("abort", abort);
    if (child.connected) child.disconnect();
    child.unref();
  }
}

export function startFailure({ folder, what }: Pick<Launch, "folder" | "what">, why: string): RlcliError {
  const detail = `The ${what} did not start: ${why}. The end of ${logPath(folder)}:\n${logTail(folder)}`;
  return new RlcliError(diagnostic("RL5003", detail));
}
