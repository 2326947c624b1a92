/** The HTTP side's handle on the compute thread. */
import { Worker } from "node:worker_threads";
import { fail, RlcliError } from "../../diagnostic.ts";
import { entryPath } from "../../entry.ts";
import type { ComputeMessage, ComputeSettings, ModelFacts, Operation, OperationMessage, ResultOf } from "./messages.ts";

/** An operation failed; `category` says whose fault it was. */
export class ComputeError extends Error {
  override readonly name = "ComputeError";
  readonly category: "user" | "server";
  constructor(message: string, category: "user" | "server") {
    super(message);
    this.category = category;
  }
}

export interface Computer {
  readonly facts: ModelFacts;
  /** Operations run in the order of these calls (samples beside them). Rejects with ComputeError. */
  run<O extends Operation>(operation: O): Promise<ResultOf<O>>;
  /** Settles when the thread ends by itself, which is always a fault. */
  readonly crashed: Promise<Error>;
  /** Lets the operation that runs finish; the rest never settles. */
  close(): Promise<void>;
}

interface Waiting {
  readonly resolve: (result: never) => void;
  readonly reject: (error: Error) => void;
}

/** Starts the thread and waits until the model is loaded. Throws RlcliError where it cannot be run. */
export async function startComputer(settings: ComputeSettings): Promise<Computer> {
  const worker = new Worker(entryPath("embedded-compute"), { workerData: settings });
  const waiting = new Map<number, Waiting>();
  let nextId = 0;
  let isClosing = false;
  // From the start: of a thread that has ended, no later listener hears.
  const ended = new Promise((resolve) => worker.once("exit", resolve));
  const crashed = new Promise<Error>((resolve) => {
    const end = (error: Error) => {
      if (isClosing) return;
      for (const { reject } of waiting.values()) reject(new ComputeError(error.message, "server"));
      waiting.clear();
      resolve(error);
    };
    worker.on("error", (error) => end(error as Error));
    worker.on("exit", (code) => end(new Error(`the compute thread ended with code ${code}`)));
  });
  const facts = await new Promise<ModelFacts>((resolve, reject) => {
    void crashed.then(reject);
    worker.on("message", (message: ComputeMessage) => {
      if (message.t === "ready") resolve(message.facts);
      else if (message.t === "refused") reject(new RlcliError(message.diagnostics));
      else settle(waiting, message);
    });
  }).catch((error: Error) => {
    isClosing = true;
    void worker.terminate();
    if (error instanceof RlcliError) throw error;
    return fail("RL5003", `The server's compute thread failed while it loaded the model: ${error.message}.`);
  });
  return {
    facts,
    crashed,
    run: (operation) =>
      new Promise((resolve, reject) => {
        const id = nextId++;
        waiting.set(id, { resolve, reject });
        worker.postMessage({ id, operation } satisfies OperationMessage);
      }),
    close: async () => {
      if (isClosing) return;
      isClosing = true;
      worker.postMessage("stop");
      await ended;
    },
  };
}

function settle(waiting: Map<number, Waiting>, message: Extract<ComputeMessage, { t: "done" | "failed" }>): void {
  const entry = waiting.get(message.id);
  waiting.delete(message.id);
  if (message.t === "done") entry?.resolve(message.result as never);
  else entry?.reject(new ComputeError(message.error, message.category));
}
