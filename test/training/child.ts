/**
 * A worker that can be made to die: runs the order of a folder, and kills itself with SIGKILL at the n-th of the points
 * at which the loop says a crash must do no harm. Bundled and started by crash.ts.
 */
import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { RunOrder } from "../../src/run-record.ts";
import { runTraining, type ServerConnection } from "../../src/training/training.ts";

interface ChildOrder {
  readonly folder: string;
  readonly modelFolder: string;
  /** A file with the ServerConnection. */
  readonly connection: string;
  /** Counts from 1; absent: lives on, and writes the points it passed to `points`. */
  readonly killAt?: number;
  readonly points?: string;
}

const child = JSON.parse(process.argv[2] as string) as ChildOrder;
const read = <T>(path: string): T => JSON.parse(readFileSync(path, "utf8")) as T;
let passed = 0;
const end = await runTraining(read<RunOrder>(join(child.folder, "spec.json")), {
  folder: child.folder,
  modelFolder: child.modelFolder,
  connect: async () => read<ServerConnection>(child.connection),
  stop: new AbortController().signal,
  now: () => new Date(),
  at(point) {
    passed += 1;
    if (child.points) appendFileSync(child.points, `${point}\n`);
    if (passed === child.killAt) process.kill(process.pid, "SIGKILL");
  },
});
process.stdout.write(JSON.stringify(end));
