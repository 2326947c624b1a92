/** A Docker daemon for tests, where one runs: what of ours is on it, and the base image of the fixture tasks. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";
import { type DockerHost, type DockerOptions, openDocker } from "../../src/environments/sandbox/docker.ts";
import { MANAGED, RUN } from "../../src/environments/sandbox/labels.ts";

export const HARBOR_FIXTURES = new URL("../fixtures/harbor/", import.meta.url).pathname;

/** Undefined where no daemon answers, or the base image cannot be made: then tests are skipped, by name. */
export async function findDocker(): Promise<Docker | undefined> {
  const docker = new Docker();
  try {
    await docker.ping();
  } catch {
    return undefined;
  }
  const made = spawnSync(join(HARBOR_FIXTURES, "make-base-image"), { encoding: "utf8", timeout: 120_000 });
  if (made.status === 0) return docker;
  process.stderr.write(`the base image cannot be made: ${made.stderr}\n`);
  return undefined;
}

/** What is there of one run, and of what nobody but us could have made: other tests use the same daemon at the same time. */
export async function leftovers(docker: Docker, run: string) {
  const containers = await docker.listContainers({ all: true, filters: { label: [`${RUN}=${run}`] } });
  const networks = await docker.listNetworks({ filters: { label: [MANAGED] } });
  const { Volumes: volumes } = await docker.listVolumes({ filters: JSON.stringify({ label: [MANAGED] }) });
  const dangling = await docker.listImages({ filters: JSON.stringify({ dangling: ["true"], label: [MANAGED] }) });
  return {
    containers: containers.map(({ Names }) => Names[0]),
    networks: networks.map(({ Name }) => Name),
    volumes: (volumes ?? []).map(({ Name }) => Name),
    dangling: dangling.map(({ Id }) => Id),
  };
}

export const NOTHING = { containers: [], networks: [], volumes: [], dangling: [] };

export interface TestHost {
  readonly host: DockerHost;
  close(): Promise<void>;
}

export async function openTestHost(run: string, options: Partial<DockerOptions> = {}): Promise<TestHost> {
  const cacheFolder = mkdtempSync(join(tmpdir(), "rlcli-docker-"));
  const host = await openDocker({ env: {}, cacheFolder, project: "test", run, concurrency: 4, ...options });
  const close = async () => {
    await host.close();
    rmSync(cacheFolder, { recursive: true, force: true });
  };
  return { host, close };
}
