/** Tasks in sandboxes as an environment: episodes are trials of them on one Docker daemon. */
import { setMaxListeners } from "node:events";
import { fail } from "../../diagnostic.ts";
import type { EnvironmentOrder, HarborOrder } from "../../environment-order.ts";
import type { Environment, Episode } from "../environment.ts";
import type { GraderContext } from "../graders/registry.ts";
import { type HostsOptions, openHosts } from "../sandbox/hosts.ts";
import { SandboxMeter } from "../sandbox/meter.ts";
import type { SandboxHost } from "../sandbox/sandbox.ts";
import { HarborEpisode } from "./episode.ts";
import type { TrialSettings } from "./settings.ts";
import { type HarborTask, loadTask } from "./task.ts";
import { Trial, taskEnv } from "./trial.ts";

/** Fails with RL7301 (the daemon), RL7205 (variables), RL7208 (tasks that changed) or what a task cannot be loaded for. */
export async function openHarbor(order: EnvironmentOrder, context: GraderContext): Promise<Environment> {
  const { harbor } = order;
  if (!harbor) throw new RangeError(`${order.address} has no harbor tasks`);
  const tasks = harbor.tasks.map(({ name, folder, digest }) => {
    const task = loadWhole(folder, name);
    if (task.digest !== digest)
      fail("RL7208", `The task ${name} in ${folder} is not what it was when this was planned. Apply again.`);
    taskEnv(task, context.env);
    return { ...task, name };
  });
  const sandboxes = new SandboxMeter();
  const host = await openHost(harbor, { ...context, meter: sandboxes });
  return new HarborEnvironment(order, harbor, tasks, { host, sandboxes, env: context.env });
}

function loadWhole(folder: string, name: string): HarborTask {
  const { task, diagnostics } = loadTask(folder);
  return task ?? fail("RL7208", `The task ${name} cannot be loaded any more: ${diagnostics[0]?.detail ?? folder}`);
}

/** A daemon with the limits of an order. Fails with RL7301. */
export function openHost(
  { sandbox, project, label }: Pick<HarborOrder, "sandbox" | "project" | "label">,
  {
    env,
    cacheFolder,
    onHost,
    meter,
  }: Pick<GraderContext, "env" | "cacheFolder" | "onHost"> & Pick<HostsOptions, "meter">,
): Promise<SandboxHost> {
  return openHosts({
    hosts: typeof sandbox.host === "string" ? [sandbox.host] : (sandbox.host ?? []),
    env,
    cacheFolder,
    project,
    run: label,
    concurrency: sandbox.concurrency,
    totalMemoryBytes: sandbox.total_memory_bytes,
    meter,
    ...(onHost ? { onHost } : {}),
  });
}

export function trialSettings({ sandbox, agent }: Pick<HarborOrder, "sandbox" | "agent">): TrialSettings {
  return {
    memoryBytes: sandbox.memory_bytes,
    pids: sandbox.pids,
    network: sandbox.network,
    security: sandbox.security,
    lifetimeMs: sandbox.lifetime_ms,
    commandTimeoutMs: agent.command_timeout_ms,
    agentTimeoutMs: agent.agent_timeout_ms ?? Number.POSITIVE_INFINITY,
  };
}

class HarborEnvironment implements Environment {
  readonly #order: EnvironmentOrder;
  readonly #harbor: HarborOrder;
  readonly #tasks: readonly (HarborTask & { readonly name: string })[];
  readonly #host: SandboxHost;
  readonly #env: GraderContext["env"];
  readonly sandboxes: SandboxMeter;
  readonly #stop = new AbortController();

  constructor(
    order: EnvironmentOrder,
    harbor: HarborOrder,
    tasks: readonly (HarborTask & { readonly name: string })[],
    parts: { readonly host: SandboxHost; readonly sandboxes: SandboxMeter; readonly env: GraderContext["env"] },
  ) {
    this.#order = order;
    this.#harbor = harbor;
    this.#tasks = tasks;
    this.#host = parts.host;
    this.#env = parts.env;
    this.sandboxes = parts.sandboxes;
    setMaxListeners(0, this.#stop.signal);
  }

  get count(): number {
    return this.#tasks.length;
  }

  /** `name` is the task's; anything else is looked for in its `[metadata]`. */
  tagOf(task: number): string | undefined {
    const { tag } = this.#order;
    const one = this.#tasks[task];
    if (tag === undefined || one === undefined) return undefined;
    const value = tag === "name" ? one.name : one.config.metadata[tag];
    return value === undefined ? undefined : String(value);
  }

  nameOf(task: number): string | undefined {
    return this.#tasks[task]?.name;
  }

  async open(task: number, signal: AbortSignal): Promise<Episode> {
    const found = this.#tasks[task];
    if (!found) throw new RangeError(`no task ${task} of ${this.count}`);
    const until = AbortSignal.any([signal, this.#stop.signal]);
    const settings = trialSettings(this.#harbor);
    const trial = new Trial(found, { host: this.#host, settings, env: this.#env, signal: until });
    // While the policy thinks of its first command.
    trial.expect();
    const keepFailed = this.#harbor.sandbox.keep_failed;
    return new HarborEpisode({ trial, agent: this.#harbor.agent, keepFailed, signal: until });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    await this.#host.close();
  }
}
