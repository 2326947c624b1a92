/**
 * The compute thread: receives operations, runs them one after another, models in turns, and samples in between, also
 * between the batches of one pass; so that the thread with the HTTP server stays free to answer while a shape compiles or
 * a batch trains.
 */
import { type MessagePort, parentPort, workerData } from "node:worker_threads";
import { messageOf, RlcliError } from "../../diagnostic.ts";
import { Engine } from "./engine.ts";
import { loadJax } from "./jax.ts";
import type { ComputeMessage, ComputeSettings, OperationMessage } from "./messages.ts";
import { RequestError } from "./trainer.ts";
import { Turns } from "./turns.ts";
import { readModel } from "./weights.ts";

/** How long samples may go on before a waiting operation gets its turn, in milliseconds. */
const SAMPLING_SLICE_MS = 30;

/** Works until told to stop; the operation that runs then is finished, those that wait are not started. */
async function serve(port: MessagePort, settings: ComputeSettings): Promise<void> {
  const say = (message: ComputeMessage) => port.postMessage(message);
  let wake = () => {};
  let engine: Engine;
  /** A slice of sampling, then the messages that have come meanwhile. */
  const pause = async (): Promise<void> => {
    const until = performance.now() + SAMPLING_SLICE_MS;
    while (engine.isSampling && performance.now() < until) engine.sampleTurn();
    await new Promise<void>((resolve) => setImmediate(resolve));
  };
  try {
    const hooks = { onSampling: () => wake(), pause };
    engine = new Engine(await loadJax(), readModel(settings.modelFolder), settings, hooks);
  } catch (error) {
    if (!(error instanceof RlcliError)) throw error;
    say({ t: "refused", diagnostics: error.diagnostics });
    port.close();
    return;
  }
  const turns = new Turns<OperationMessage>();
  let isStopping = false;
  port.on("message", (message: OperationMessage | "stop") => {
    if (message === "stop") isStopping = true;
    // Samples join those in flight at once, whatever is being trained.
    else if ("ticket" in message.operation) void settle(engine, message, say);
    else turns.add(message.operation.model, message);
    wake();
  });
  say({ t: "ready", facts: engine.facts });
  while (!isStopping) {
    const next = turns.take();
    if (next) await settle(engine, next, say);
    await pause();
    if (isStopping || !turns.isEmpty || engine.isSampling) continue;
    await new Promise<void>((resolve) => {
      wake = resolve;
    });
  }
  port.close();
}

async function settle(engine: Engine, { id, operation }: OperationMessage, say: (message: ComputeMessage) => void) {
  try {
    say({ t: "done", id, result: await engine.run(operation) });
  } catch (error) {
    const isTheirs = error instanceof RequestError || error instanceof RlcliError;
    if (!isTheirs) process.stderr.write(`${operation.op} failed: ${(error as Error)?.stack ?? error}\n`);
    say({ t: "failed", id, error: messageOf(error), category: isTheirs ? "user" : "server" });
  }
}

if (parentPort) void serve(parentPort, workerData as ComputeSettings);
