/** Docker daemons of a test's own: to be stopped in the middle, to be counted on without anybody else, to be reached over TLS. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";
import { expect, vi } from "vitest";
import { HARBOR_FIXTURES } from "./docker.ts";

/** Slow, and needs root. */
export const canStartDaemons =
  Boolean(process.env.RLCLI_TEST_ALL) &&
  process.getuid?.() === 0 &&
  spawnSync("unshare", ["--net", "dockerd", "--version"]).status === 0;

export class TestDaemon {
  readonly folder = mkdtempSync(join(tmpdir(), "rlcli-dockerd-"));
  readonly host = `unix://${join(this.folder, "docker.sock")}`;
  readonly docker = new Docker({ socketPath: join(this.folder, "docker.sock") });
  readonly #more: readonly string[];
  readonly #isApart: boolean;
  #process: ChildProcess | undefined;

  /** `more` options; `isApart`: in a network of its own, in which nobody reaches it but by its socket. */
  constructor(more: readonly string[] = [], isApart = true) {
    this.#more = more;
    this.#isApart = isApart;
  }

  async up(): Promise<void> {
    const { folder, host } = this;
    const paths = [
      ["--data-root", join(folder, "data")],
      ["--exec-root", join(folder, "exec")],
      ["--pidfile", join(folder, "pid")],
    ].flat();
    const options = ["--host", host, ...paths, "--iptables=false", ...this.#more];
    // Only in a network of its own: a daemon without a bridge takes away the bridge of the machine's own daemon.
    const command = this.#isApart ? ["--net", "dockerd", "--bridge", "none", ...options] : ["dockerd", ...options];
    this.#process = spawn(this.#isApart ? "unshare" : "env", command, { stdio: "ignore" });
    await vi.waitFor(() => this.docker.ping(), { timeout: 30_000, interval: 300 });
  }

  /** The base image of the fixture tasks. */
  makeBase(): void {
    const env = { ...process.env, DOCKER_HOST: this.host };
    expect(spawnSync(join(HARBOR_FIXTURES, "make-base-image"), { env }).status).toBe(0);
  }

  async down(signal: NodeJS.Signals): Promise<void> {
    const daemon = this.#process;
    if (!daemon || daemon.exitCode !== null || daemon.signalCode !== null) return;
    const gone = new Promise((resolve) => daemon.once("exit", resolve));
    daemon.kill(signal);
    await gone;
  }

  async close(): Promise<void> {
    await this.down("SIGTERM");
    // One that was killed leaves its mounts.
    const mounts = readFileSync("/proc/mounts", "utf8")
      .split("\n")
      .map((line) => line.split(" ")[1] ?? "");
    for (const mount of mounts.reverse()) if (mount.startsWith(this.folder)) spawnSync("umount", ["-l", mount]);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Ids of all that there is on a daemon, whoever's it is. */
export async function inventory(docker: Docker) {
  const [containers, networks, volumes, images] = await Promise.all([
    docker.listContainers({ all: true }),
    docker.listNetworks(),
    docker.listVolumes(),
    docker.listImages({ all: true }),
  ]);
  return {
    containers: containers.map(({ Names, State }) => `${Names[0]} ${State}`).sort(),
    networks: networks.map(({ Name }) => Name).sort(),
    volumes: (volumes.Volumes ?? []).map(({ Name }) => Name).sort(),
    images: images.map(({ Id, RepoTags }) => `${RepoTags?.[0] ?? ""} ${Id}`).sort(),
  };
}
