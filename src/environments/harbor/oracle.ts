/** A task's own solution as the agent: what a task set is checked with before anything is trained on it. */
import { fail } from "../../diagnostic.ts";
import { isFile, readTree, withExecutable } from "../sandbox/tree.ts";
import type { Trial } from "./trial.ts";

/** A solution may use all the time that an agent has, or this where that is without limit. */
const LONGEST_MS = 24 * 3600_000;

/** Runs the solution of the step that is worked on; its exit code says nothing. Fails with RL7201 where there is none. */
async function runSolution(trial: Trial, signal: AbortSignal): Promise<void> {
  const { solution } = trial.step;
  const entries = solution === undefined ? [] : readTree(solution);
  if (!entries.some(({ path }) => path === "solve.sh"))
    fail("RL7201", `The task ${trial.task.config.name} has no solution/solve.sh.`);
  await trial.sandbox.upload(withExecutable(entries, "solve.sh"), "/solution");
  if (!isFile(entries, "solve.sh"))
    await trial.sandbox.run({ command: "chmod +x /solution/solve.sh", user: "0", cwd: "/", timeoutMs: 60_000, signal });
  await trial.sandbox.run({
    command: "(/solution/solve.sh) > /logs/agent/oracle.txt 2>&1",
    user: trial.agentUser,
    env: { DEBIAN_FRONTEND: "noninteractive", ...trial.env.solution },
    timeoutMs: Math.min(trial.agentTimeoutMs, LONGEST_MS),
    signal,
  });
}

/** A whole trial with the solution, or with nobody. */
export async function checkTrial(
  trial: Trial,
  agent: "oracle" | "nop",
  signal: AbortSignal,
): Promise<Trial["rewards"]> {
  await trial.begin();
  do {
    if (agent === "oracle") await runSolution(trial, signal);
  } while (await trial.judge());
  return trial.rewards;
}
