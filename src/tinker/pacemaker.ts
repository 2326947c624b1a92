/**
 * Heartbeats that a busy event loop cannot starve. The session's own timer beats as long as it runs; a second thread hears
 * of every beat and, when it has heard nothing for two intervals (a grader that computes for minutes, a template of a
 * thousand turns), beats in its place until it does. It is started a while after the session, so that short programs
 * never pay for it.
 */
import { Worker } from "node:worker_threads";

/** What the thread needs to beat by itself; the key stays in this process. */
export interface Beat {
  readonly session: string;
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly everyMs: number;
}

type Message = { readonly heard: Beat } | { readonly forget: string };

/** Plain JavaScript, because it is handed over as text: so it needs no file beside whatever this is bundled into. */
const THREAD = `
const { parentPort } = require("node:worker_threads");
const sessions = new Map();
parentPort.on("message", ({ heard, forget }) => {
  if (heard) sessions.set(heard.session, { beat: heard, at: Date.now() });
  else sessions.delete(forget);
});
const look = () => {
  let next = 1000;
  for (const entry of sessions.values()) {
    const { beat, at } = entry;
    next = Math.min(next, beat.everyMs / 2);
    if (Date.now() - at <= 2 * beat.everyMs) continue;
    entry.at = Date.now() - beat.everyMs;
    const { url, headers, body, everyMs } = beat;
    // What the answer is, the session's own next beat will learn.
    fetch(url, { method: "POST", headers, body, signal: AbortSignal.timeout(Math.max(everyMs, 1000)) }).then(
      (answer) => answer.arrayBuffer(),
    ).catch(() => {});
  }
  setTimeout(look, next);
};
look();
`;

export class Pacemaker {
  #worker: Worker | undefined;

  /** The session has just beaten. */
  heard(beat: Beat): void {
    this.#worker ??= startThread(() => {
      this.#worker = undefined;
    });
    this.#say({ heard: beat });
  }

  forget(session: string): void {
    this.#say({ forget: session });
  }

  async close(): Promise<void> {
    await this.#worker?.terminate();
    this.#worker = undefined;
  }

  #say(message: Message): void {
    this.#worker?.postMessage(message);
  }
}

/** Never keeps a finished process running. Without it sessions live by their own timers, as they did. */
function startThread(onEnd: () => void): Worker {
  // Not the program's own flags: with --input-type=module the text above would not be what it is.
  const limits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 };
  const worker = new Worker(THREAD, { eval: true, execArgv: [], resourceLimits: limits });
  worker.on("error", onEnd);
  worker.on("exit", onEnd);
  worker.unref();
  return worker;
}
