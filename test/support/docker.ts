/** A Docker daemon for tests, where one runs: what of ours is on it, and the base image of the fixture tasks. */
import { spawnSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";
import { expect, vi } from "vitest";
import { type DockerHost, type DockerOptions, openDocker } from "../../src/environments/sandbox/docker.ts";
import { MANAGED, RUN } from "../../src/environments/sandbox/labels.ts";
import { takeTurn } from "../../src/turn.ts";

export const HARBOR_FIXTURES = new URL("../fixtures/harbor/", import.meta.url).pathname;

/** One cache for all tests: images that several of them need are made once, by one at a time. */
export const cacheFolder = join(tmpdir(), "rlcli-test-cache");

/** Undefined where no daemon answers, or the base image cannot be made: then tests are skipped, by name. */
export async function findDocker(): Promise<Docker | undefined> {
  const docker = new Docker();
  try {
    await docker.ping();
  } catch {
    return undefined;
  }
  return (await makeImage(join(HARBOR_FIXTURES, "make-base-image"))) ? docker : undefined;
}

/** The image that the tasks of `examples/harbor` start from; false where it cannot be made. */
export const makeExampleImage = (): Promise<boolean> =>
  makeImage(new URL("../../examples/harbor/make-image", import.meta.url).pathname);

/** By one at a time: files of tests begin together, and neither apt nor the name of an image is for two at once. */
async function makeImage(script: string): Promise<boolean> {
  const end = await takeTurn(join(cacheFolder, "make-image"));
  try {
    const { status, stderr } = spawnSync(script, { encoding: "utf8", timeout: 180_000 });
    if (status !== 0) process.stderr.write(`${script} failed: ${stderr}\n`);
    return status === 0;
  } finally {
    end();
  }
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

/** Fails where something is left. Builds of other tests have nameless images for a moment: those are looked at again. */
export async function expectNothingLeft(docker: Docker, run: string): Promise<void> {
  expect((await leftovers(docker, run)).containers).toEqual([]);
  const look = async () => expect(await leftovers(docker, run)).toEqual(NOTHING);
  await vi.waitFor(look, { timeout: 60_000, interval: 500 });
}

/**
 * Images of a daemon, nameless ones and layers too, in whose making a command had a part: only those are a test's own, since others
 * build at the same time.
 */
export async function imagesMadeBy(docker: Docker, command: string): Promise<readonly string[]> {
  const images = await docker.listImages({ all: true });
  const found = images.map(async ({ Id }) => {
    // One that is gone by now is nobody's.
    const steps: { CreatedBy: string }[] = await docker
      .getImage(Id)
      .history()
      .catch(() => []);
    return steps.some(({ CreatedBy }) => CreatedBy.includes(command)) ? [Id] : [];
  });
  return (await Promise.all(found)).flat();
}

export interface TestHost {
  readonly host: DockerHost;
  close(): Promise<void>;
}

export async function openTestHost(run: string, options: Partial<DockerOptions> = {}): Promise<TestHost> {
  const host = await openDocker({ env: {}, cacheFolder, project: "test", run, concurrency: 4, ...options });
  return { host, close: () => host.close() };
}
