/**
 * Nothing is leaked, counted: on a daemon that nobody else uses, all containers, networks, volumes and images before and after each
 * way in which a command can end, with others' there. Slow, and needs root: with RLCLI_TEST_ALL=1.
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pack } from "tar-stream";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { OWNER } from "../../src/environments/sandbox/labels.ts";
import { HARBOR_FIXTURES } from "../support/docker.ts";
import { canStartDaemons, inventory, TestDaemon } from "../support/dockerd.ts";
import { TestProject } from "./project.ts";

type Run = ReturnType<TestProject["start"]>;

interface Scenario {
  /** In the place of the task's own. */
  readonly dockerfile?: string;
  readonly tests?: string;
  readonly args: readonly string[];
  /** What is done once its container is there (`until` says how it is known); nothing: it ends by itself. */
  readonly during?: (run: Run, pidOfOwner: number) => Promise<void> | void;
  readonly until?: (command: string) => boolean;
  /** Whether zero must be left already before the next command. */
  readonly isCleanAtOnce: boolean;
  /** The next command, where it is not the plain one. */
  readonly next?: readonly string[];
}

const TRY = ["env", "run", "--task", "hello-file"];
const HOLD = [...TRY, "--command", "setsid sleep 500 & sleep 500"];
const TRAIN = ["apply", "--auto-approve"];
const HANG = "#!/bin/bash\nsetsid sleep 500 & sleep 500\n";

const SCENARIOS: Readonly<Record<string, Scenario>> = {
  "a normal end": { args: TRY, isCleanAtOnce: true },
  "a build that fails": {
    dockerfile: "FROM rlcli-test/base:1\nVOLUME /data\nRUN echo layer > /made\nRUN exit 42\n",
    args: TRY,
    isCleanAtOnce: true,
  },
  "a task that fails": { tests: "#!/bin/bash\nexit 1\n", args: TRY, isCleanAtOnce: true },
  "a container that is kept on request": {
    tests: "#!/bin/bash\nexit 0\n",
    args: ["env", "run", "./tasks", "--task", "hello-file", "--agent", "nop", "--keep-failed"],
    isCleanAtOnce: false,
    next: ["env", "gc", "--kept"],
  },
  "tests that take too long": { tests: HANG, args: TRY, isCleanAtOnce: true },
  "a container with volumes of its own": {
    dockerfile: "FROM rlcli-test/base:1\nWORKDIR /app\nVOLUME /data /more\n",
    args: TRY,
    isCleanAtOnce: true,
  },
  "Ctrl-C": { args: HOLD, during: (run) => void run.kill("SIGINT"), isCleanAtOnce: true },
  "a second Ctrl-C": {
    args: HOLD,
    during: async (run) => {
      run.kill("SIGINT");
      await sleep(30);
      run.kill("SIGINT");
    },
    isCleanAtOnce: false,
  },
  SIGKILL: { args: HOLD, during: (run) => void run.kill("SIGKILL"), isCleanAtOnce: false },
  "a build in stages": {
    dockerfile:
      "FROM rlcli-test/base:1 AS one\nCOPY . /one\nFROM rlcli-test/base:1\nWORKDIR /app\nCOPY --from=one /one /two\n",
    args: TRY,
    isCleanAtOnce: true,
  },
  "SIGKILL in the middle of a build": {
    dockerfile: "FROM rlcli-test/base:1\nRUN echo layer > /made\nRUN sleep 296\n",
    args: TRY,
    until: (command) => command.includes("sleep 296"),
    during: (run) => void run.kill("SIGKILL"),
    isCleanAtOnce: false,
  },
  "SIGKILL of the training worker in the middle of a trial": {
    tests: HANG,
    args: TRAIN,
    during: (_, pidOfOwner) => void process.kill(pidOfOwner, "SIGKILL"),
    isCleanAtOnce: false,
  },
  "Ctrl-C of training, and again": {
    tests: HANG,
    args: TRAIN,
    during: async (run) => {
      run.kill("SIGINT");
      await sleep(1000);
      run.kill("SIGINT");
    },
    isCleanAtOnce: false,
  },
};

describe.skipIf(!canStartDaemons)("all is counted (skipped without RLCLI_TEST_ALL, root and dockerd)", () => {
  const daemon = new TestDaemon();
  const { docker } = daemon;

  /** A container, a network, a volume and a nameless image of somebody else. */
  async function foreigners(): Promise<void> {
    await docker.createVolume({ Name: "theirs" });
    await docker.createNetwork({ Name: "theirs", Driver: "null" }).catch(() => {});
    const container = await docker.createContainer({
      name: "theirs",
      Image: "rlcli-test/base:1",
      Cmd: ["sleep", "3000"],
      HostConfig: { NetworkMode: "none", Binds: ["theirs:/data"] },
    });
    await container.start();
    const tar = pack();
    tar.entry({ name: "Dockerfile" }, "FROM rlcli-test/base:1\nRUN echo theirs > /theirs\n");
    tar.finalize();
    await docker
      .buildImage(tar as unknown as NodeJS.ReadableStream, { networkmode: "none" })
      .then((stream) => new Promise((resolve) => stream.on("data", () => {}).on("end", resolve)));
  }

  beforeAll(async () => {
    await daemon.up();
    daemon.makeBase();
    await foreigners();
  }, 120_000);
  afterAll(() => daemon.close(), 240_000);

  function project({ dockerfile }: Scenario): TestProject {
    const made = new TestProject({
      "rlcli.yaml":
        "rlcli: 1\nproject: test\nserver: { backend: embedded, model: builtin:tiny }\nenvironments:\n  box: { type: harbor, tasks: tasks, on_limit: grade }\nruns:\n  agent: { type: rl, environment: box, loss: gspo, steps: 2, group_size: 4, groups_per_batch: 1, max_tokens: 8, learning_rate: 1e-3 }\n",
    });
    onTestFinished(() => made.close());
    made.env.DOCKER_HOST = daemon.host;
    mkdirSync(join(made.folder, "tasks"));
    const task = join(made.folder, "tasks/hello-file");
    cpSync(join(HARBOR_FIXTURES, "hello-file"), task, { recursive: true });
    if (dockerfile !== undefined) writeFileSync(join(task, "environment/Dockerfile"), dockerfile);
    return made;
  }

  const others = async () => (await docker.listContainers({ all: true })).filter(({ Names }) => Names[0] !== "/theirs");

  test.each(Object.entries(SCENARIOS))(
    "%s",
    async (_, scenario) => {
      const made = project(scenario);
      // What stays of a task is its image, a cache that is there before anything is counted.
      if (!scenario.dockerfile?.includes("RUN")) made.run([...TRY, "--agent", "nop"]);
      if (scenario.tests !== undefined) made.write("tasks/hello-file/tests/test.sh", scenario.tests);
      // Where somebody else is to end it, it must not end by itself.
      made.edit("tasks/hello-file/task.toml", "timeout_sec = 30.0", `timeout_sec = ${scenario.during ? 300 : 3}`);
      const before = await inventory(docker);
      expect(before.containers).toEqual(["/theirs running"]);
      const run = made.start(...scenario.args);
      if (scenario.during) {
        const isIt = scenario.until ?? (() => true);
        await vi.waitFor(
          async () =>
            expect((await others()).filter(({ Command, State }) => State === "running" && isIt(Command))).not.toEqual(
              [],
            ),
          { timeout: 60_000, interval: 100 },
        );
        await sleep(1000);
        const owner = (await others())[0]?.Labels[OWNER];
        await scenario.during(run, owner === undefined ? 0 : (JSON.parse(owner) as { pid: number }).pid);
      }
      await run.ended;
      if (scenario.next) expect((await others()).map(({ Names }) => Names[0])).toEqual([expect.stringMatching(/kept/)]);
      if (!scenario.isCleanAtOnce) made.run(scenario.next ?? ["env", "gc"]);
      expect(await inventory(docker)).toEqual(before);
    },
    180_000,
  );
});
