/**
 * A run's worker process: `node run-worker.js FOLDER`. It takes over the lease that `apply` took, trains, and stores the run's
 * record itself, so that nothing depends on whoever started it. SIGTERM and SIGINT stop it at the end of a step.
 */
import { workRun } from "../../kinds/run/worker.ts";

const folder = process.argv[2];
const stop = new AbortController();
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"] as const) process.on(signal, () => stop.abort(signal));

if (folder === undefined) {
  process.stderr.write("usage: run-worker FOLDER (started by rlcli itself)\n");
  process.exitCode = 1;
} else {
  // A run that waits for what can never come would otherwise end without a word.
  process.on("beforeExit", () => {
    process.stderr.write("The run waits for something and nothing is under way that could bring it: a bug in rlcli.\n");
    process.exit(1);
  });
  const status = await workRun(folder, { env: process.env, stop: stop.signal, now: () => new Date() });
  // Sockets and timers of a lost server must not keep the process: everything is on disk by now.
  process.exit(status === "complete" ? 0 : 1);
}
