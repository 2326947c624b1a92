/** What the spec says of harbor tasks beside the tasks themselves, as the worker gets it: plain data, milliseconds and bytes. */
import type { NetworkPolicy } from "../sandbox/sandbox.ts";

export interface TrialSettings {
  /** Of a container whose task says nothing. */
  readonly memoryBytes: number;
  readonly pids: number;
  /** `task`: as each task says. */
  readonly network: "task" | NetworkPolicy;
  readonly security: "compat" | "hardened";
  readonly lifetimeMs: number;
  /** Of one command of the agent. */
  readonly commandTimeoutMs: number;
  /** Over the tasks' own limits; infinite where nothing is said. */
  readonly agentTimeoutMs: number;
}
