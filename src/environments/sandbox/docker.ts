/** Sandboxes as containers of a Docker daemon, by its API alone. */
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type Docker from "dockerode";
import { fail } from "../../diagnostic.ts";
import { Budget } from "./budget.ts";
import { ImageStore } from "./build.ts";
import { reapBuilds } from "./building.ts";
import { type Connection, checkDaemon, connectDaemon, type DaemonFacts, failSandbox, within } from "./daemon.ts";
import { DockerSandbox } from "./docker-sandbox.ts";
import { sandboxLabels } from "./labels.ts";
import type { SandboxMeter } from "./meter.ts";
import { reap, removeContainer } from "./reap.ts";
import type { ExpectedSandbox, ImageOrder, Sandbox, SandboxHost, SandboxOrder } from "./sandbox.ts";
import { LONGEST_IDLE_MS, WarmPool } from "./warm.ts";

export interface DockerOptions {
  /** As DOCKER_HOST says where absent. */
  readonly host?: string | undefined;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For locks of builds. */
  readonly cacheFolder: string;
  /** Labels of containers. */
  readonly project: string;
  readonly run: string;
  /** Sandboxes at once, and memory of all of them. */
  readonly concurrency: number;
  readonly totalMemoryBytes?: number | undefined;
  /** Counts them. */
  readonly meter?: SandboxMeter | undefined;
}

/** In the cache, one for each daemon: locks of builds, and what they are about. */
export const buildFolder = (cacheFolder: string, { id }: DaemonFacts): string => join(cacheFolder, "sandbox", slug(id));

const PING_TIMEOUT_MS = 5_000;
const REMOVE_TIMEOUT_MS = 30_000;
/** How long a start that is given up is waited for before what it made is removed. */
const LATE_START_MS = 10_000;

/** Connects, and removes what processes that are gone left behind. Fails with RL7301. */
export async function openDocker(options: DockerOptions): Promise<DockerHost> {
  const connection = await connectDaemon(options.host, options.env);
  const { docker } = connection;
  try {
    const facts = await checkDaemon(docker);
    await reap(docker);
    await reapBuilds(docker, buildFolder(options.cacheFolder, facts));
    return new DockerHost(connection, facts, options);
  } catch (error) {
    connection.close();
    throw error;
  }
}

export class DockerHost implements SandboxHost {
  readonly docker: Docker;
  readonly #connection: Connection;
  readonly #facts: DaemonFacts;
  readonly #options: DockerOptions;
  readonly #images: ImageStore;
  readonly #budget: Budget;
  /** Names of containers that may be there: noted before they are made. */
  readonly #names = new Set<string>();
  readonly #unremoved = new Set<string>();
  readonly #starting = new Set<Promise<unknown>>();
  readonly #warm: WarmPool<DockerSandbox>;
  #isClosed = false;

  constructor(connection: Connection, facts: DaemonFacts, options: DockerOptions) {
    const { docker } = connection;
    this.docker = docker;
    this.#connection = connection;
    this.#facts = facts;
    this.#options = options;
    this.#images = new ImageStore(docker, buildFolder(options.cacheFolder, facts));
    const memoryBytes = options.totalMemoryBytes ?? Number.POSITIVE_INFINITY;
    this.#budget = new Budget(options.concurrency, memoryBytes, () => this.#warm.fill(), options.meter);
    this.#warm = new WarmPool(this.#budget, (order, release) => this.#start(withIdleTime(order), release));
  }

  get address(): string {
    return this.#connection.address;
  }

  /** Whether a sandbox that is asked for now would have to wait, and for how many others, as a share of the places. */
  get load(): number {
    return this.#budget.load;
  }

  /** False where the daemon is not reached, now and on a second try. */
  async answers(): Promise<boolean> {
    const ping = () => within(PING_TIMEOUT_MS, this.docker.ping(), "The daemon");
    try {
      await ping().catch(() => this.#connection.revive().then(ping));
      return true;
    } catch {
      return false;
    }
  }

  image(order: ImageOrder): Promise<string> {
    return this.#images.image(order);
  }

  async start(order: SandboxOrder, signal?: AbortSignal): Promise<Sandbox> {
    const release = this.#budget.tryTake(order.memoryBytes) ?? (await this.#waitForPlace(order.memoryBytes, signal));
    return this.#start(order, release, signal);
  }

  #waitForPlace(bytes: number, signal: AbortSignal | undefined): Promise<() => void> {
    this.#warm.yieldTo(bytes);
    return this.#budget.take(bytes, signal);
  }

  expect(order: SandboxOrder): ExpectedSandbox {
    const expectation = this.#warm.expect(order);
    const start = async (signal?: AbortSignal): Promise<Sandbox> => {
      const ahead = await this.#warm.take(expectation);
      if (!ahead) return this.start(order, signal);
      if (signal?.aborted) await ahead.close();
      signal?.throwIfAborted();
      return ahead;
    };
    return { start, cancel: () => this.#warm.cancel(expectation) };
  }

  /** Gives the place back when the sandbox is closed, or cannot be started. */
  async #start(order: SandboxOrder, release: () => void, signal?: AbortSignal): Promise<DockerSandbox> {
    if (this.#isClosed) {
      release();
      return fail("RL7303", "No sandbox is started any more: the environment is being closed.");
    }
    this.#removeAgain();
    const starting = this.#make(order, release, signal);
    this.#starting.add(starting);
    return starting.finally(() => this.#starting.delete(starting));
  }

  async #make(order: SandboxOrder, release: () => void, signal?: AbortSignal): Promise<DockerSandbox> {
    const name = `rlcli-${slug(order.label)}-${randomBytes(6).toString("hex")}`;
    this.#names.add(name);
    const { project, run } = this.#options;
    const labels = sandboxLabels(project, run, order.lifetimeMs);
    const cpus = order.cpus === undefined ? {} : { cpus: Math.min(order.cpus, this.#facts.cpus) };
    const start = DockerSandbox.start(this.docker, name, { ...order, ...cpus }, labels);
    try {
      const started = await within(order.startTimeoutMs, start, `Starting a container of ${order.image}`);
      signal?.throwIfAborted();
      return new DockerSandbox(this.docker, started, name, order, (isKept) => this.#give(name, isKept, release));
    } catch (error) {
      // Also one that a failed or unanswered request makes in the end.
      await settled([start]);
      await this.#give(name, false, release);
      signal?.throwIfAborted();
      return failSandbox("A sandbox could not be started", error);
    }
  }

  /** A removal that fails is tried again with the next sandbox, and told at the end if that is no use either. */
  async #give(name: string, isKept: boolean, release: () => void): Promise<void> {
    if (isKept) this.#names.delete(name);
    else await this.#remove(name).catch(() => this.#unremoved.add(name));
    release();
  }

  #removeAgain(): void {
    for (const name of this.#unremoved) {
      this.#unremoved.delete(name);
      this.#remove(name).catch(() => this.#unremoved.add(name));
    }
  }

  async #remove(name: string): Promise<void> {
    await within(REMOVE_TIMEOUT_MS, removeContainer(this.docker, name), "The removal of a container");
    this.#names.delete(name);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#warm.close();
    // One that is being made now has a name that is not there yet, and would be there afterwards.
    await settled([...this.#starting]);
    const results = await Promise.allSettled([...this.#names].map((name) => this.#remove(name)));
    this.#connection.close();
    const failed = results.flatMap((result) => (result.status === "rejected" ? [String(result.reason)] : []));
    if (failed.length > 0)
      fail(
        "RL7306",
        `${[...this.#names].join(", ")}: ${failed[0]} Run \`rlcli env gc\` once the daemon is well again.`,
      );
  }
}

/** Waits until all are over, but not for ever. */
const settled = (work: readonly Promise<unknown>[]): Promise<unknown> =>
  within(LATE_START_MS, Promise.allSettled(work), "A start").catch(() => {});

/** What it waits for somebody is not taken from its lifetime. */
const withIdleTime = (order: SandboxOrder): SandboxOrder => ({
  ...order,
  lifetimeMs: order.lifetimeMs + LONGEST_IDLE_MS,
});

const slug = (label: string): string => label.replace(/[^a-zA-Z0-9_.-]+/g, "-").slice(0, 40);
