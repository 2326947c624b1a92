/** A task's health check: run until it passes, or has failed too often. */
import { setTimeout as sleep } from "node:timers/promises";
import { fail } from "../../diagnostic.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { HealthcheckConfig } from "./config.ts";

/** Failures within the start period are free; one that takes too long counts as failed. Fails with RL7304. */
export async function waitUntilHealthy(sandbox: Sandbox, check: HealthcheckConfig, signal: AbortSignal): Promise<void> {
  const began = performance.now();
  const isStarting = () => performance.now() - began < check.startPeriodSec * 1000;
  for (let failures = 0; ; ) {
    const mayFail = isStarting();
    const result = await sandbox.run({ command: check.command, timeoutMs: check.timeoutSec * 1000, signal });
    if (result.exitCode === 0) return;
    if (!mayFail) failures += 1;
    if (failures >= check.retries) {
      const how = result.hasTimedOut
        ? `took longer than ${check.timeoutSec} s`
        : `ended with exit code ${result.exitCode}`;
      const said = `${result.stdout.text}${result.stderr.text}`.trim().slice(-300);
      fail(
        "RL7304",
        `The health check \`${check.command}\` failed ${failures} times; the last one ${how}. ${said}`.trim(),
      );
    }
    await sleep((mayFail ? check.startIntervalSec : check.intervalSec) * 1000, undefined, { signal });
  }
}
