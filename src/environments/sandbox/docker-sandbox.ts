/** One container as a sandbox. */
import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type Docker from "dockerode";
import { pack } from "tar-stream";
import { fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { tarOf } from "./context.ts";
import { failSandbox, statusOf, within, wordsOf } from "./daemon.ts";
import { downloadFiles } from "./download.ts";
import { hasRunOutOfMemory } from "./events.ts";
import { runCommand } from "./exec.ts";
import { KEPT_NAME, type Labels } from "./labels.ts";
import type { Command, CommandResult, DownloadLimits, NetworkPolicy, Sandbox, SandboxOrder } from "./sandbox.ts";
import { LIVE_SCRIPT } from "./scripts.ts";
import type { TreeEntry } from "./tree.ts";

const API_TIMEOUT_MS = 30_000;
const COPY_TIMEOUT_MS = 120_000;
const BRIDGE = "bridge";
const HEALTH_POLL_MS = 250;
const MIB = 2 ** 20;
const CLOCK_SKEW_S = 60;
const DYING_MS = 1000;
const DYING_POLL_MS = 100;

export interface Started {
  readonly container: Docker.Container;
  /** Where commands run that do not say where. */
  readonly workdir: string;
}

type OnClose = (isKept: boolean) => Promise<void>;

export class DockerSandbox implements Sandbox {
  readonly name: string;
  readonly #docker: Docker;
  readonly #container: Docker.Container;
  readonly #workdir: string;
  readonly #order: SandboxOrder;
  readonly #onClose: OnClose;
  #network: NetworkPolicy;
  #memoryKills = 0;
  #hasRunCommands = false;
  /** Seconds since 1970, as the daemon of another machine may have them. */
  readonly #since = Date.now() / 1000 - CLOCK_SKEW_S;
  #closing: Promise<void> | undefined;

  constructor(docker: Docker, started: Started, name: string, order: SandboxOrder, onClose: OnClose) {
    this.#docker = docker;
    this.#container = started.container;
    this.#workdir = started.workdir;
    this.name = name;
    this.#order = order;
    this.#network = order.network;
    this.#onClose = onClose;
  }

  /** Makes and starts it, and waits until it is healthy where its image says what that is. */
  static async start(docker: Docker, name: string, order: SandboxOrder, labels: Labels): Promise<Started> {
    const container = await docker.createContainer(creation(name, order, labels));
    await container.start();
    for (;;) {
      const { State, Config } = await container.inspect();
      if (!State.Running)
        fail("RL7303", `A container of ${order.image} ended as soon as it was started. ${WHAT_IMAGES_NEED}`);
      const health = State.Health?.Status;
      if (health === "unhealthy")
        fail("RL7304", `The image ${order.image} has a health check of its own, and it failed.`);
      if (health !== "starting") return { container, workdir: Config.WorkingDir || "/" };
      await sleep(HEALTH_POLL_MS);
    }
  }

  /** False where it ended, or is gone. Fails where the daemon does not answer. */
  async isAlive(): Promise<boolean> {
    const asked = within(API_TIMEOUT_MS, this.#container.inspect(), "The daemon");
    return asked.then(
      ({ State }) => State.Running && !State.Paused,
      (error: unknown) => statusOf(error) !== 404 && failSandbox("A container cannot be looked at", error),
    );
  }

  async run(command: Command): Promise<CommandResult> {
    const cwd = command.cwd ?? this.#workdir;
    const place = {
      container: this.#container,
      pids: this.#order.pids,
      putScript: (text: string) => this.#putScript(text),
      newMemoryKills: (total: number) => this.#newMemoryKills(total),
    };
    const result = await this.#alive(runCommand(place, { ...command, cwd }));
    this.#hasRunCommands = true;
    return result;
  }

  get memoryKills(): number {
    return this.#memoryKills;
  }

  #newMemoryKills(total: number): number {
    const news = Math.max(0, total - this.#memoryKills);
    this.#memoryKills += news;
    return news;
  }

  /** A failure of a container that is gone says so, and whether that was for want of memory. */
  async #alive<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (error) {
      if (!(error instanceof RlcliError) || !(await this.#hasEnded())) throw error;
      const { memoryBytes } = this.#order;
      const why = (await hasRunOutOfMemory(this.#docker, this.#container.id, this.#since))
        ? `its memory of ${memoryBytes / MIB} MiB was used up.`
        : `it was ended from inside or by somebody else. ${this.#hasRunCommands ? messageOf(error) : WHAT_IMAGES_NEED}`;
      return fail("RL7303", `The container ${this.name} is gone: ${why}`, { cause: error });
    }
  }

  /** Before its first command it is watched for a moment: its init process outlives what it could not start. */
  async #hasEnded(): Promise<boolean> {
    for (let left = this.#hasRunCommands ? 0 : DYING_MS; ; left -= DYING_POLL_MS) {
      const isAlive = await this.isAlive().catch(() => undefined);
      if (isAlive === false) return true;
      if (isAlive === undefined || left <= 0) return false;
      await sleep(DYING_POLL_MS);
    }
  }

  async #putScript(text: string): Promise<string> {
    const name = `.rlcli-${randomBytes(8).toString("hex")}`;
    const tar = pack();
    tar.entry({ name, mode: 0o666, mtime: new Date(0) }, text);
    tar.finalize();
    await this.#copy(tar, "/");
    return `/${name}`;
  }

  async upload(entries: readonly TreeEntry[], target: string): Promise<void> {
    const folder = target.replace(/^\/+|\/+$/g, "");
    const all: readonly TreeEntry[] = [{ type: "folder", path: "", mode: 0o755 }, ...entries];
    await this.#alive(this.#copy(tarOf(all, folder === "" ? "" : `${folder}/`), "/"));
  }

  #copy(tar: unknown, path: string): Promise<void> {
    const copied = this.#container.putArchive(tar as NodeJS.ReadableStream, { path });
    return within(COPY_TIMEOUT_MS, copied, "A copy into a container").then(
      () => {},
      (error: unknown) => failSandbox("Files could not be copied into the container", error),
    );
  }

  download(path: string, limits: DownloadLimits) {
    const work = downloadFiles(this.#container, path, limits);
    return this.#alive(within(COPY_TIMEOUT_MS, work, "A copy out of a container"));
  }

  async setNetwork(policy: NetworkPolicy): Promise<void> {
    if (policy === this.#network) return;
    if (this.#order.network !== "public") fail("RL7303", "A sandbox that began without a network cannot get one.");
    const network = this.#docker.getNetwork(BRIDGE);
    try {
      const options = { Container: this.#container.id };
      const change = policy === "none" ? network.disconnect({ ...options, Force: true }) : network.connect(options);
      await within(API_TIMEOUT_MS, change, "The daemon");
      this.#network = policy;
    } catch (error) {
      failSandbox("The network of a container could not be changed", error);
    }
  }

  close({ keep = false }: { readonly keep?: boolean } = {}): Promise<void> {
    this.#closing ??= keep ? this.#keep() : this.#onClose(false);
    return this.#closing;
  }

  async #keep(): Promise<void> {
    try {
      await this.#container.rename({ name: `${KEPT_NAME}${this.name.replace(/^rlcli-/, "")}` });
    } catch (error) {
      await this.#onClose(false);
      if (statusOf(error) !== 404) fail("RL7303", `A container could not be kept: ${wordsOf(error)}.`);
      return;
    }
    await this.#onClose(true);
  }
}

/** Also said of a container that ends before its first command: its init process runs for a moment where it has nothing to start. */
const WHAT_IMAGES_NEED = "Its image needs bash, and an entrypoint that runs what it is given.";

const NO_LOGS = { Type: "none", Config: {} };

/** The image's entrypoint stays; the command only waits, so that the container ends by itself and, with AutoRemove, is gone. */
function creation(name: string, order: SandboxOrder, labels: Labels): Docker.ContainerCreateOptions {
  const { image, env, workdir, cpus, memoryBytes, pids, gpus, network, security, lifetimeMs } = order;
  return {
    name,
    Image: image,
    Cmd: ["bash", "-c", LIVE_SCRIPT, "rlcli", String(Math.ceil(lifetimeMs / 1000))],
    Env: Object.entries(env).map(([key, value]) => `${key}=${value}`),
    ...(workdir === undefined ? {} : { WorkingDir: workdir }),
    Labels: { ...labels },
    HostConfig: {
      Init: true,
      AutoRemove: true,
      RestartPolicy: { Name: "" },
      NetworkMode: network === "none" ? "none" : BRIDGE,
      Memory: memoryBytes,
      // The same as the memory: no swap beside it.
      MemorySwap: memoryBytes,
      PidsLimit: pids,
      LogConfig: NO_LOGS,
      ...(cpus === undefined ? {} : { NanoCpus: Math.round(cpus * 1e9) }),
      ...(gpus ? { DeviceRequests: [{ Driver: "", Count: gpus, Capabilities: [["gpu"]] }] } : {}),
      ...(security === "hardened" ? { CapDrop: ["ALL"], SecurityOpt: ["no-new-privileges"] } : {}),
    },
  } as Docker.ContainerCreateOptions;
}
