/** A Docker daemon of the test's own, stopped and started in the middle of a trial. Slow, and needs root: with RLCLI_TEST_ALL=1. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { HARBOR_FIXTURES } from "../support/docker.ts";
import { canStartDaemons, inventory, TestDaemon } from "../support/dockerd.ts";
import { TestProject } from "./project.ts";

describe.skipIf(!canStartDaemons)("a daemon that restarts (skipped without RLCLI_TEST_ALL, root and dockerd)", () => {
  const daemon = new TestDaemon();
  const { docker } = daemon;
  beforeAll(async () => {
    await daemon.up();
    daemon.makeBase();
  }, 120_000);
  afterAll(() => daemon.close(), 240_000);

  test.each([
    ["a trial", "", "rlcli-hello-file"],
    ["a build", "FROM rlcli-test/base:1\nRUN echo layer > /made\nRUN sleep 297\n", ""],
  ])(
    "%s in the middle is a fault, not a hang, and the next command leaves nothing",
    async (_, dockerfile, container) => {
      const project = new TestProject({
        "rlcli.yaml": "rlcli: 1\nproject: test\nenvironments:\n  box: { type: harbor, tasks: tasks }\n",
      });
      onTestFinished(() => project.close());
      project.env.DOCKER_HOST = daemon.host;
      mkdirSync(join(project.folder, "tasks"));
      cpSync(join(HARBOR_FIXTURES, "hello-file"), join(project.folder, "tasks/hello-file"), { recursive: true });
      const path = join(project.folder, "tasks/hello-file/environment/Dockerfile");
      const original = readFileSync(path);
      // The task's own image is there before anything is counted.
      project.ok("env", "run", "--task", "hello-file");
      const before = await inventory(docker);
      if (dockerfile !== "") writeFileSync(path, dockerfile);
      const run = project.start("env", "run", "--task", "hello-file", "--command", "sleep 500");
      const isThere = async () =>
        (await docker.listContainers()).some(({ Names, Command }) =>
          container === "" ? Command.includes("sleep 297") : Names[0]?.includes(container),
        );
      await vi.waitFor(async () => expect(await isThere()).toBe(true), { timeout: 30_000, interval: 200 });
      const began = performance.now();
      await daemon.down("SIGTERM");
      const absent = project.run(["env", "gc"]);
      expect([absent.code, absent.err]).toEqual([1, expect.stringMatching(/RL7301/)]);
      const ended = await run.ended;
      expect([ended.code, ended.err]).toEqual([1, expect.stringMatching(/RL730[236]/)]);
      expect(performance.now() - began).toBeLessThan(120_000);
      await daemon.up();
      project.ok("env", "gc");
      expect(await inventory(docker)).toEqual(before);
      writeFileSync(path, original);
      expect(JSON.parse(project.ok("--json", "env", "run", "--task", "hello-file"))).toMatchObject({ reward: 1 });
      expect(await inventory(docker)).toEqual(before);
    },
    240_000,
  );
});
