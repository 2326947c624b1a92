/** One trial of a task: its container from the start to the verdict. Who acts in between — a policy, a solution, nobody — is the caller's. */
import { fail } from "../../diagnostic.ts";
import type {
  CommandResult,
  ExpectedSandbox,
  NetworkPolicy,
  Sandbox,
  SandboxHost,
  SandboxOrder,
} from "../sandbox/sandbox.ts";
import { readTree } from "../sandbox/tree.ts";
import { ALWAYS, collectArtifacts, type TrialOutput } from "./artifacts.ts";
import type {
  Artifact,
  EnvironmentConfig,
  EnvTable,
  HealthcheckConfig,
  Network,
  PhaseConfig,
  StepConfig,
  VerifierConfig,
} from "./config.ts";
import { waitUntilHealthy } from "./health.ts";
import { combineRewards, meets, type Rewards } from "./reward.ts";
import { Luggage, type VerifierPlace, verifierPlace } from "./separate.ts";
import type { TrialSettings } from "./settings.ts";
import type { HarborTask, TaskStep } from "./task.ts";
import { resolveEnv } from "./templates.ts";
import { runTests } from "./verifier.ts";

const ROOT_TIMEOUT_MS = 60_000;
const MIB = 2 ** 20;
const LOGS = "/logs/agent /logs/verifier /logs/artifacts";

export interface TrialDeps {
  readonly host: SandboxHost;
  readonly settings: TrialSettings;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** Takes files that come out of the container; absent where nobody wants them. */
  readonly output?: TrialOutput;
}

/** The env tables of a task with the host's variables in them. Fails with RL7205. */
export function taskEnv(task: HarborTask, host: TrialDeps["env"]) {
  const { environment, verifier, solution, steps } = task.config;
  const tables = { environment: environment.env, verifier: verifier.env, solution: solution.env };
  const resolved = Object.entries(tables).map(([name, table]) => [name, resolveEnv(table, host)] as const);
  const ofSteps = steps.map((step) => resolveEnv(step.verifier.env, host));
  const places = Array.from({ length: Math.max(1, steps.length) }, (_, index) =>
    resolveEnv(verifierPlace(task.folder, task.config, index)?.environment.env ?? {}, host),
  );
  const all = [...resolved.map(([, one]) => one), ...ofSteps, ...places];
  const missing = [...new Set(all.flatMap((one) => one.missing))];
  if (missing.length > 0)
    fail("RL7205", `The task ${task.config.name} needs ${missing.join(", ")} of the environment, which is not set.`);
  const [environmentEnv, verifierEnv, solutionEnv] = resolved.map(([, one]) => one.env);
  return {
    environment: environmentEnv ?? {},
    verifiers: steps.length === 0 ? [verifierEnv ?? {}] : ofSteps.map((one) => one.env),
    /** Of the containers that tests have of their own. */
    places: places.map(({ env }) => env),
    solution: solutionEnv ?? {},
    secrets: [...new Set(all.flatMap((one) => one.secrets))],
  };
}

export class Trial {
  readonly task: HarborTask;
  readonly env: ReturnType<typeof taskEnv>;
  readonly #deps: TrialDeps;
  readonly #results: Rewards[] = [];
  #sandbox: Sandbox | undefined;
  #step = -1;
  #isOver = false;
  /** Network of the container's environment, which phases may override. */
  #baseline: Network = "public";
  #isClosed = false;
  #expected: Promise<ExpectedSandbox> | undefined;

  /** Fails with RL7205. */
  constructor(task: HarborTask, deps: TrialDeps) {
    this.task = task;
    this.#deps = deps;
    this.env = taskEnv(task, deps.env);
  }

  get sandbox(): Sandbox {
    if (!this.#sandbox) throw new Error("the trial has not begun");
    return this.#sandbox;
  }

  /** Index of the step that is worked on, from 0. */
  get stepIndex(): number {
    return this.#step;
  }

  get step(): TaskStep {
    return this.task.steps[this.#step] as TaskStep;
  }

  get #config(): { readonly agent: PhaseConfig; readonly verifier: VerifierConfig } & Partial<StepConfig> {
    return this.task.config.steps[this.#step] ?? this.task.config;
  }

  get agentUser(): string | undefined {
    return this.#config.agent.user;
  }

  /** Milliseconds the agent has for this step; infinite where nothing is said. */
  get agentTimeoutMs(): number {
    const { timeoutSec } = this.#config.agent;
    return Math.min((timeoutSec ?? Number.POSITIVE_INFINITY) * 1000, this.#deps.settings.agentTimeoutMs);
  }

  /**
   * Says that the trial is going to begin: its image is made, and its container started ahead where there is room. What goes wrong
   * is left to `begin`.
   */
  expect(): void {
    const { host } = this.#deps;
    this.#expected ??= this.#order().then((order) => {
      const expected = host.expect(order);
      if (this.#isClosed) expected.cancel();
      return expected;
    });
    this.#expected.catch(() => {});
  }

  /** Builds, starts, waits until it is healthy, and prepares the first step. Fails with RL7302, RL7303 or RL7304. */
  async begin(): Promise<void> {
    const { host, signal } = this.#deps;
    const { environment } = this.task.config;
    const expected = await this.#expected?.catch(() => undefined);
    this.#expected = undefined;
    this.#sandbox = expected ? await expected.start(signal) : await host.start(await this.#order(), signal);
    await this.#prepare(environment, environment.image !== undefined);
    await this.#beginStep(0);
  }

  /** What every container needs before anybody works in it. */
  async #prepare(environment: EnvironmentConfig, copiesFiles: boolean): Promise<void> {
    this.#baseline = environment.network;
    await this.#root(`mkdir -p ${LOGS} && chmod 777 ${LOGS}`, "The folders for logs cannot be made");
    if (copiesFiles) await this.#copyEnvironment();
    await this.#network(environment.network);
    await this.#health(environment.healthcheck);
  }

  /** What its container is made from. Makes the image where it is not there. */
  async #order(): Promise<SandboxOrder> {
    const { environment } = this.task.config;
    const context = `${this.task.folder}/environment`;
    return this.#orderOf({ environment, context, image: environment.image }, this.env.environment, this.#networks());
  }

  async #orderOf(
    {
      environment,
      context,
      image: prebuilt,
    }: Pick<VerifierPlace, "environment" | "context"> & { image?: string | undefined },
    env: EnvTable,
    networks: readonly Network[],
  ): Promise<SandboxOrder> {
    const { host, settings, signal } = this.#deps;
    // Building always has the time that the task's own environment has.
    const timeoutMs = this.task.config.environment.buildTimeoutSec * 1000;
    const label = this.task.config.name.split("/").at(-1) as string;
    const image = await host.image({
      label,
      context,
      timeoutMs,
      signal,
      ...(prebuilt === undefined ? {} : { prebuilt }),
    });
    return {
      label,
      image,
      env,
      ...(environment.workdir === undefined ? {} : { workdir: environment.workdir }),
      ...(environment.cpus === undefined ? {} : { cpus: environment.cpus }),
      ...(environment.gpus === undefined ? {} : { gpus: environment.gpus }),
      memoryBytes: environment.memoryMb === undefined ? settings.memoryBytes : environment.memoryMb * MIB,
      pids: settings.pids,
      // A network can be taken away from a container, and given back, but not given to one that never had any.
      network: networks.every((network) => this.#policyOf(network) === "none") ? "none" : "public",
      security: settings.security,
      lifetimeMs: settings.lifetimeMs,
      startTimeoutMs: timeoutMs,
    };
  }

  /** Files of `environment/` beside a prebuilt image go to the working directory, unless a Dockerfile says where. */
  async #copyEnvironment(): Promise<void> {
    const entries = readTree(`${this.task.folder}/environment`);
    if (entries.length === 0 || entries.some(({ path }) => path === "Dockerfile")) return;
    await this.sandbox.upload(entries, await this.#workdir(undefined));
  }

  /** Of all phases in the agent's container. */
  #networks(): readonly Network[] {
    const { environment, steps } = this.task.config;
    const phases = (steps.length === 0 ? [this.task.config] : steps).flatMap(({ agent, verifier }) =>
      verifier.isSeparate ? [agent] : [agent, verifier],
    );
    return [environment.network, ...phases.map(({ network }) => network ?? environment.network)];
  }

  #policyOf(network: Network): NetworkPolicy {
    const { settings } = this.#deps;
    if (settings.network !== "task") return settings.network;
    return network === "public" ? "public" : "none";
  }

  #network(network: Network | undefined): Promise<void> {
    return this.sandbox.setNetwork(this.#policyOf(network ?? this.#baseline));
  }

  async #beginStep(index: number): Promise<void> {
    this.#step = index;
    const { name, workdir } = this.step;
    if (index > 0)
      await this.#root(
        "rm -rf /logs/verifier/* /logs/verifier/.[!.]* /tests",
        "The last step's tests cannot be removed",
      );
    if (workdir !== undefined) await this.#prepareStep(name as string, workdir);
    await this.#health(this.#config.healthcheck);
    await this.#network(this.#config.agent.network);
  }

  async #prepareStep(name: string, folder: string): Promise<void> {
    const user = this.agentUser;
    const cwd = await this.#workdir(user);
    const entries = readTree(folder);
    await this.sandbox.upload(entries, cwd);
    if (!entries.some(({ path }) => path === "setup.sh")) return;
    const { signal, settings } = this.#deps;
    const result = await this.sandbox.run({
      command: "bash setup.sh",
      cwd,
      user,
      timeoutMs: settings.commandTimeoutMs,
      signal,
    });
    if (result.exitCode !== 0)
      fail("RL7303", `setup.sh of step ${name} ended with exit code ${result.exitCode}: ${lastWords(result)}`);
  }

  async #workdir(user: string | undefined): Promise<string> {
    const { stdout } = await this.sandbox.run({
      command: "pwd",
      user,
      timeoutMs: ROOT_TIMEOUT_MS,
      signal: this.#deps.signal,
    });
    return stdout.text.replace(/\n$/, "");
  }

  #health(check: HealthcheckConfig | undefined): Promise<void> {
    return check ? waitUntilHealthy(this.sandbox, check, this.#deps.signal) : Promise.resolve();
  }

  async #root(command: string, what: string): Promise<void> {
    const result = await this.sandbox.run({
      command,
      user: "0",
      cwd: "/",
      timeoutMs: ROOT_TIMEOUT_MS,
      signal: this.#deps.signal,
    });
    if (result.exitCode !== 0) fail("RL7303", `${what}: ${lastWords(result)}`);
  }

  /**
   * Judges the step and, where its gate lets it, begins the next: true where there is one. Fails with RL7305, also after a step
   * that had a verdict: a verdict that is missing is never a 0.
   */
  async judge(): Promise<boolean> {
    const { signal, output } = this.#deps;
    const { verifier, minReward } = this.#config;
    await this.#collect(verifier);
    if (output) await collectArtifacts(this.sandbox, this.#artifacts(), output, this.step.name);
    const place = verifierPlace(this.task.folder, this.task.config, this.#step);
    if (place) await this.#moveTo(place);
    await this.#network(verifier.network);
    const rewards = await runTests(this.sandbox, {
      tests: place?.isBundled ? undefined : this.step.tests,
      user: verifier.user,
      env: this.env.verifiers[this.#step] ?? {},
      timeoutMs: verifier.timeoutSec * 1000,
      signal,
      ...(output ? { output, step: this.step.name } : {}),
    });
    this.#results.push(rewards);
    const hasNext = this.#step + 1 < this.task.steps.length && meets(rewards, minReward);
    if (hasNext) await this.#beginStep(this.#step + 1);
    else this.#isOver = true;
    return hasNext;
  }

  /** The task's, and those of the step. */
  #artifacts(): readonly Artifact[] {
    return [...this.task.config.artifacts, ...(this.task.config.steps[this.#step]?.artifacts ?? [])];
  }

  /** The agent's container ends, and another one takes its place with the artifacts in it. */
  async #moveTo(place: VerifierPlace): Promise<void> {
    const { host, signal } = this.#deps;
    const luggage = new Luggage();
    try {
      await luggage.take(this.sandbox, [ALWAYS, ...this.#artifacts()]);
      // First: one who holds a place while waiting for another can lock all out.
      await this.sandbox.close();
      const { environment, isBundled } = place;
      const networks = [environment.network, this.#config.verifier.network ?? environment.network];
      const order = await this.#orderOf(place, this.env.places[this.#step] ?? {}, networks);
      this.#sandbox = await host.start(order, signal);
      await this.#prepare(environment, !isBundled && place.image !== undefined);
      await luggage.give(this.sandbox);
    } finally {
      luggage.close();
    }
  }

  /** Hooks of the task, before anything is taken out; their failures count for nothing. */
  async #collect({ collect }: VerifierConfig): Promise<void> {
    for (const { command, user, timeoutSec } of collect)
      await this.sandbox.run({ command, user, timeoutMs: timeoutSec * 1000, signal: this.#deps.signal });
  }

  /** What the tests gave: of each step that was judged, and of the task. */
  get rewards(): { readonly steps: readonly Rewards[]; readonly task: Rewards } {
    return { steps: this.#results, task: combineRewards(this.#results, this.task.config.strategy) };
  }

  /** Processes of its container that were killed because its memory was used up. */
  get memoryKills(): number {
    return this.#sandbox?.memoryKills ?? 0;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  async close(options: { readonly keep?: boolean } = {}): Promise<void> {
    this.#isClosed = true;
    this.#expected?.then(
      (expected) => expected.cancel(),
      () => {},
    );
    this.#expected = undefined;
    await this.#sandbox?.close(options);
  }
}

function lastWords({ stdout, stderr }: CommandResult): string {
  const said = `${stdout.text}${stderr.text}`.trim().slice(-500);
  return said === "" ? "it said nothing." : said;
}
