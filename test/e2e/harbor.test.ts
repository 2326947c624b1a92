/** The real program on a real daemon: nothing is left behind however it ends, and nobody else's is touched. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import { MANAGED, RUN, sandboxLabels } from "../../src/environments/sandbox/labels.ts";
import { type DaemonApart, openDaemonApart } from "../support/daemon-apart.ts";
import { findDocker, HARBOR_FIXTURES } from "../support/docker.ts";
import { TestProject } from "./project.ts";

const hasDocker = (await findDocker()) !== undefined;
/** A node that starts, an image that is built, a container: on a busy machine. */
const BUSY = { timeout: 90_000, interval: 200 };

describe.skipIf(!hasDocker)("harbor on a Docker daemon (skipped where none runs)", () => {
  let apart: DaemonApart;
  let docker: DaemonApart["docker"];
  beforeAll(async () => {
    apart = await openDaemonApart();
    docker = apart.docker;
  });
  afterAll(() => apart.close());

  /** A container that is not ours, and one of another process that lives: this one. */
  async function foreigners() {
    const make = async (name: string, labels: Record<string, string>) => {
      const container = await docker.createContainer({
        name,
        Image: "rlcli-test/base:1",
        Cmd: ["sleep", "1000"],
        Labels: labels,
      });
      await container.start();
      onTestFinished(() => container.remove({ force: true }));
      return name;
    };
    const stamp = `${process.pid}-${Date.now()}`;
    const names = [
      await make(`somebody-else-${stamp}`, { app: "theirs" }),
      await make(`rlcli-alive-${stamp}`, { ...sandboxLabels("other", `foreign-${stamp}`, 1_000_000) }),
    ];
    return async () => {
      const there = await docker.listContainers({ all: true });
      expect(names.filter((name) => there.some(({ Names }) => Names.includes(`/${name}`)))).toEqual(names);
    };
  }

  /** A project whose environment has a name of its own, by which its containers are known. */
  function project(name: string, spec = "") {
    const made = new TestProject({
      "rlcli.yaml": `rlcli: 1\nproject: test\nenvironments:\n  ${name}: { type: harbor, tasks: tasks }\n${spec}`,
    });
    made.env.DOCKER_HOST = apart.host;
    mkdirSync(join(made.folder, "tasks"));
    cpSync(join(HARBOR_FIXTURES, "hello-file"), join(made.folder, "tasks/hello-file"), { recursive: true });
    onTestFinished(() => made.close());
    const own = async () =>
      (await docker.listContainers({ all: true, filters: { label: [`${RUN}=environment.${name}`] } })).map(
        ({ State }) => State,
      );
    return { made, own };
  }

  const HOLD = ["env", "run", "--task", "hello-file", "--command", "setsid sleep 500 & sleep 500"];

  test("killed with SIGKILL: the next command removes exactly what it left", async () => {
    const { made, own } = project("killed");
    const untouched = await foreigners();
    const child = made.start(...HOLD);
    await vi.waitFor(async () => expect(await own()).toEqual(["running"]), BUSY);
    child.kill("SIGKILL");
    await sleep(300);
    expect(await own()).toEqual(["running"]);
    const dry = made.run(["env", "gc", "--dry-run"]);
    expect(dry.out).toMatch(/would remove container rlcli-hello-file-\w+ of test, environment\.killed/);
    expect(dry.out).toMatch(/left container rlcli-alive-.*its process is at work/);
    expect(await own()).toEqual(["running"]);
    // Any command that opens a sandbox does it; gc is one.
    made.run(["env", "run", "--task", "hello-file", "--agent", "nop"]);
    expect(await own()).toEqual([]);
    expect(made.run(["env", "gc"]).out).not.toMatch(/environment\.killed/);
    await untouched();
  });

  test.each([
    ["once", 1],
    ["twice", 2],
  ])("Ctrl-C %s during a command: out in time, and nothing stays", async (_, times) => {
    const { made, own } = project(`stopped-${times}`);
    const untouched = await foreigners();
    const child = made.start(...HOLD);
    await vi.waitFor(async () => expect(await own()).toEqual(["running"]), BUSY);
    await sleep(500);
    const began = performance.now();
    for (let time = 0; time < times; time += 1) {
      child.kill("SIGINT");
      await sleep(50);
    }
    await child.ended;
    expect(performance.now() - began).toBeLessThan(60_000);
    if (times > 1) made.run(["env", "gc"]);
    expect(await own()).toEqual([]);
    await untouched();
  });

  test("Ctrl-C during a build leaves neither a container nor an image", async () => {
    const { made, own } = project("building");
    writeFileSync(
      join(made.folder, "tasks/hello-file/environment/Dockerfile"),
      "FROM rlcli-test/base:1\nRUN sleep 298\n",
    );
    const child = made.start(...HOLD);
    const building = async () =>
      (await docker.listContainers({ all: true })).filter(({ Command: command }) => command.includes("sleep 298"))
        .length;
    await vi.waitFor(async () => expect(await building()).toBe(1), BUSY);
    child.kill("SIGINT");
    await child.ended;
    await vi.waitFor(async () => expect(await building()).toBe(0), BUSY);
    expect(await own()).toEqual([]);
  });

  test("Ctrl-C while the tests judge: out in time, and nothing stays", async () => {
    const { made, own } = project("judging");
    writeFileSync(join(made.folder, "tasks/hello-file/tests/test.sh"), "#!/bin/bash\ntouch /tmp/judging; sleep 296\n");
    const child = made.start("env", "run", "--task", "hello-file", "--agent", "nop");
    const judges = async () => {
      const containers = await docker.listContainers({ filters: { label: [`${RUN}=environment.judging`] } });
      const top = containers[0] && (await docker.getContainer(containers[0].Id).top());
      return JSON.stringify(top?.Processes ?? "").includes("sleep 296");
    };
    await vi.waitFor(async () => expect(await judges()).toBe(true), BUSY);
    const began = performance.now();
    child.kill("SIGINT");
    await child.ended;
    expect(performance.now() - began).toBeLessThan(60_000);
    expect(await own()).toEqual([]);
  });

  test("a container of a failed trial is kept on request, and goes on request", async () => {
    const { made, own } = project("kept");
    writeFileSync(join(made.folder, "tasks/hello-file/tests/test.sh"), "#!/bin/bash\nexit 0\n");
    const ran = made.run(["env", "run", "--task", "hello-file", "--agent", "nop"]);
    expect([ran.code, ran.err]).toEqual([1, expect.stringMatching(/RL7305/)]);
    expect(await own()).toEqual([]);
    made.run(["env", "run", join(made.folder, "tasks"), "--task", "hello-file", "--agent", "nop", "--keep-failed"]);
    const kept = async () =>
      (
        await docker.listContainers({
          all: true,
          filters: { label: [`${MANAGED}=1`], name: ["rlcli-kept-hello-file"] },
        })
      ).length;
    expect(await kept()).toBe(1);
    expect(made.run(["env", "gc"]).out).toMatch(/left container rlcli-kept-hello-file-.*--kept removes it/);
    expect(await kept()).toBe(1);
    made.run(["env", "gc", "--kept"]);
    expect(await kept()).toBe(0);
  });

  test("env check says what a task set is worth; play is the agent's tool for a person", async () => {
    const { made } = project("checked");
    const checked = made.run(["env", "check"]);
    expect([checked.code, checked.out]).toEqual([0, expect.stringMatching(/ok +hello-file +solution 1, nothing 0/)]);
    cpSync(join(HARBOR_FIXTURES, "partial-credit"), join(made.folder, "tasks/partial-credit"), { recursive: true });
    const failed = made.run(["env", "check"]);
    expect([failed.code, failed.err]).toEqual([
      1,
      expect.stringMatching(/RL7307[\s\S]*gets 0\.5, and must get at least 1/),
    ]);
    expect(made.run(["env", "check", "--min-oracle", "0.5"]).code).toBe(0);
    const played = made.run(["env", "play", "--task", "hello-file"], "echo 'Hello, world!' > /app/hello.txt\nexit\n");
    expect([played.code, played.out]).toEqual([0, expect.stringMatching(/Create the file[\s\S]*reward 1\n$/)]);
    const listed = JSON.parse(made.run(["--json", "env", "list"]).out) as { tasks: { name: string }[] };
    expect(listed.tasks.map(({ name }) => name)).toEqual(["hello-file", "partial-credit"]);
  });

  test("apply --smoke comes to the containers: a Dockerfile that does not build is found, and nothing stays", {
    timeout: 240_000,
  }, async () => {
    const { made, own } = project(
      "smoked",
      "server: { backend: embedded, model: builtin:tiny }\nruns:\n  agent: { type: rl, environment: smoked, loss: gspo, steps: 100 }\n",
    );
    const good = made.run(["apply", "--smoke"]);
    expect([good.code, good.err]).toEqual([0, expect.stringMatching(/✓ run\.agent: done, step 2, reward 0\.000/)]);
    writeFileSync(
      join(made.folder, "tasks/hello-file/environment/Dockerfile"),
      "FROM rlcli-test/base:1\nRUN echo no luck; exit 42\n",
    );
    const bad = made.run(["apply", "--smoke"]);
    expect([bad.code, bad.err + bad.out]).toEqual([
      1,
      expect.stringMatching(/cannot be built[\s\S]*no luck[\s\S]*RL7302/),
    ]);
    expect(await own()).toEqual([]);
  });

  test("GSPO on builtin:tiny: rewards of containers become a step, and a change of a test is another run", async () => {
    const { made, own } = project(
      "trained",
      "server: { backend: embedded, model: builtin:tiny }\nruns:\n  agent: { type: rl, environment: trained, loss: gspo, steps: 2, group_size: 4, groups_per_batch: 1, max_tokens: 8, learning_rate: 1e-3 }\n",
    );
    // What it can do is not what is tested here: the reward is drawn, so that there is something to learn from.
    writeFileSync(
      join(made.folder, "tasks/hello-file/tests/test.sh"),
      "#!/bin/bash\necho $RANDOM > /logs/verifier/reward.txt\n",
    );
    made.edit("rlcli.yaml", "tasks: tasks }", "tasks: tasks, on_limit: grade }");
    const applied = made.run(["apply", "--auto-approve"]);
    expect([applied.code, applied.err]).toEqual([0, expect.stringMatching(/run\.agent: done, step 2/)]);
    expect(await own()).toEqual([]);
    const lines = readFileSync(join(made.runFolder("agent"), "metrics.jsonl"), "utf8")
      .trim()
      .split("\n");
    const metrics = lines.map((line) => JSON.parse(line) as { step?: number; values?: Record<string, number> });
    const steps = metrics.filter(({ step }) => step !== undefined);
    expect(steps.length).toBe(2);
    expect(steps.at(-1)?.values?.["reward/mean"]).toBeGreaterThan(0);
    expect(made.run(["plan", "--detailed-exitcode"]).code).toBe(0);
    writeFileSync(
      join(made.folder, "tasks/hello-file/tests/test.sh"),
      "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\n",
    );
    const plan = made.run(["plan", "--detailed-exitcode"]);
    expect([plan.code, plan.out]).toEqual([
      2,
      expect.stringMatching(/-\/\+ run\.agent {2}replaced because environment\.trained changed/),
    ]);
  });
});
