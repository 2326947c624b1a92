/** A Docker daemon of the test's own, stopped and started in the middle of a trial. Slow, and needs root: with RLCLI_TEST_ALL=1. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Docker from "dockerode";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { HARBOR_FIXTURES } from "../support/docker.ts";
import { TestProject } from "./project.ts";

const canRun =
  Boolean(process.env.RLCLI_TEST_ALL) &&
  process.getuid?.() === 0 &&
  spawnSync("unshare", ["--net", "dockerd", "--version"]).status === 0;

describe.skipIf(!canRun)("a daemon that restarts (skipped without RLCLI_TEST_ALL, root and dockerd)", () => {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-dockerd-"));
  const socket = join(folder, "docker.sock");
  const docker = new Docker({ socketPath: socket });
  let daemon: ChildProcess;

  async function up(): Promise<void> {
    const paths = [
      "--data-root",
      join(folder, "data"),
      "--exec-root",
      join(folder, "exec"),
      "--pidfile",
      join(folder, "pid"),
    ];
    // In a network of its own: a daemon without a bridge takes away the bridge of the machine's own daemon.
    const command = [
      "--net",
      "dockerd",
      "--host",
      `unix://${socket}`,
      ...paths,
      "--bridge",
      "none",
      "--iptables=false",
    ];
    daemon = spawn("unshare", command, { stdio: "ignore" });
    await vi.waitFor(() => docker.ping(), { timeout: 30_000, interval: 300 });
  }
  async function down(signal: NodeJS.Signals): Promise<void> {
    const gone = new Promise((resolve) => daemon.once("exit", resolve));
    daemon.kill(signal);
    await gone;
  }

  beforeAll(async () => {
    await up();
    const env = { ...process.env, DOCKER_HOST: `unix://${socket}` };
    expect(spawnSync(join(HARBOR_FIXTURES, "make-base-image"), { env }).status).toBe(0);
  }, 120_000);
  afterAll(async () => {
    await down("SIGTERM");
    rmSync(folder, { recursive: true, force: true });
  }, 240_000);

  test.each([
    ["a trial", "", "rlcli-hello-file"],
    ["a build", "FROM rlcli-test/base:1\nRUN sleep 297\n", ""],
  ])(
    "%s in the middle is a fault, not a hang, and the next command leaves nothing",
    async (_, dockerfile, container) => {
      const project = new TestProject({
        "rlcli.yaml": "rlcli: 1\nproject: test\nenvironments:\n  box: { type: harbor, tasks: tasks }\n",
      });
      onTestFinished(() => project.close());
      project.env.DOCKER_HOST = `unix://${socket}`;
      mkdirSync(join(project.folder, "tasks"));
      cpSync(join(HARBOR_FIXTURES, "hello-file"), join(project.folder, "tasks/hello-file"), { recursive: true });
      const path = join(project.folder, "tasks/hello-file/environment/Dockerfile");
      const original = readFileSync(path);
      if (dockerfile !== "") writeFileSync(path, dockerfile);
      const run = project.start("env", "run", "--task", "hello-file", "--command", "sleep 500");
      const containers = async () => (await docker.listContainers({ all: true })).length;
      const isThere = async () =>
        (await docker.listContainers()).some(({ Names, Command }) =>
          container === "" ? Command.includes("sleep 297") : Names[0]?.includes(container),
        );
      await vi.waitFor(async () => expect(await isThere()).toBe(true), { timeout: 30_000, interval: 200 });
      const began = performance.now();
      await down("SIGTERM");
      const absent = project.run(["env", "gc"]);
      expect([absent.code, absent.err]).toEqual([1, expect.stringMatching(/RL7301/)]);
      const ended = await run.ended;
      expect([ended.code, ended.err]).toEqual([1, expect.stringMatching(/RL730[236]/)]);
      expect(performance.now() - began).toBeLessThan(120_000);
      await up();
      project.ok("env", "gc");
      expect(await containers()).toBe(0);
      writeFileSync(path, original);
      expect(JSON.parse(project.ok("--json", "env", "run", "--task", "hello-file"))).toMatchObject({ reward: 1 });
      expect(await containers()).toBe(0);
    },
    240_000,
  );
});
