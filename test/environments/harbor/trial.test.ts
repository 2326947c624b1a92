/** Every fixture task on a real daemon: its own solution and nobody get what the fixtures' README says. */
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { folderOutput } from "../../../src/environments/harbor/artifacts.ts";
import { checkTrial } from "../../../src/environments/harbor/oracle.ts";
import { loadTask } from "../../../src/environments/harbor/task.ts";
import { Trial, type TrialDeps } from "../../../src/environments/harbor/trial.ts";
import { expectNothingLeft, findDocker, HARBOR_FIXTURES, openTestHost, type TestHost } from "../../support/docker.ts";

const docker = await findDocker();
const signal = new AbortController().signal;
const settings: TrialDeps["settings"] = {
  memoryBytes: 512 << 20,
  pids: 512,
  network: "task",
  security: "compat",
  lifetimeMs: 300_000,
  commandTimeoutMs: 20_000,
  agentTimeoutMs: Number.POSITIVE_INFINITY,
};

describe.skipIf(!docker)("trials of tasks on a Docker daemon (skipped where none runs)", () => {
  let opened: TestHost;
  const scratch = mkdtempSync(join(tmpdir(), "harbor-trial-"));
  beforeAll(async () => {
    opened = await openTestHost("trial.test");
  });
  afterAll(async () => {
    await opened.close();
    rmSync(scratch, { recursive: true, force: true });
    await expectNothingLeft(docker!, "trial.test");
  });

  async function run(folder: string, agent: "oracle" | "nop", more: Partial<TrialDeps> = {}) {
    const { task } = loadTask(folder);
    const trial = new Trial(task!, { host: opened.host, settings, env: {}, signal, ...more });
    try {
      return await checkTrial(trial, agent, signal);
    } finally {
      await trial.close();
    }
  }
  const fixture = (name: string) => join(HARBOR_FIXTURES, name);
  function changed(
    name: string,
    as: string,
    change: (read: (path: string) => string, write: (path: string, text: string) => void) => void,
  ) {
    const folder = join(scratch, as);
    cpSync(fixture(name), folder, { recursive: true });
    change(
      (path) => readFileSync(join(folder, path), "utf8"),
      (path, text) => writeFileSync(join(folder, path), text),
    );
    return folder;
  }

  test.each([
    ["hello-file", { reward: 1 }, { reward: 0 }],
    ["fix-inventory", { reward: 1 }, { reward: 0 }],
    ["partial-credit", { reward: 0.5 }, { reward: 0 }],
    [
      "reward-json",
      { reward: 0.75, length: 1, capitals: 1, topic: 0, passed: 1 },
      { reward: 0, length: 0, capitals: 0, topic: 0 },
    ],
    ["env-and-workdir", { reward: 1 }, { reward: 0 }],
    ["multi-step", { reward: 0.75 }, { reward: 0 }],
  ])("%s: its solution and nobody get what they should", async (name, oracle, nop) => {
    const [solved, idle] = await Promise.all([run(fixture(name), "oracle"), run(fixture(name), "nop")]);
    expect(solved.task).toEqual(oracle);
    expect(idle.task).toEqual(nop);
    if (name === "multi-step") {
      expect(solved.steps).toEqual([{ reward: 1 }, { reward: 0.5 }]);
      expect(idle.steps).toEqual([{ reward: 0 }]);
    }
  });

  test("multi-step with `final` counts the last step", async () => {
    const folder = changed("multi-step", "final", (read, write) =>
      write("task.toml", `multi_step_reward_strategy = "final"\n${read("task.toml")}`),
    );
    expect((await run(folder, "oracle")).task).toEqual({ reward: 0.5 });
  });

  test("tests that hang give no verdict, though they wrote a reward, and end in time", async () => {
    const began = performance.now();
    await expect(run(fixture("hanging-tests"), "nop")).rejects.toThrow(/RL7305.*ran longer than 3 s/);
    // They would hang for ten minutes.
    expect(performance.now() - began).toBeLessThan(100_000);
  });

  test("tests without a reward file give no verdict, in their own last words", async () => {
    await expect(run(fixture("no-reward-file"), "oracle")).rejects.toThrow(
      /RL7305.*wrote neither[\s\S]*all tests passed/,
    );
  });

  test("an image that cannot be built says why, is built once, and leaves nothing", async () => {
    const results = await Promise.allSettled([
      run(fixture("broken-dockerfile"), "nop"),
      run(fixture("broken-dockerfile"), "nop"),
    ]);
    for (const result of results) {
      expect(result.status).toBe("rejected");
      expect(String((result as PromiseRejectedResult).reason)).toMatch(/RL7302[\s\S]*42/);
    }
    await expectNothingLeft(docker!, "trial.test");
  });

  test("a reward that the agent planted is gone before the tests, also as a folder or a link", async () => {
    const folder = changed("no-reward-file", "planted", (_, write) =>
      write(
        "solution/solve.sh",
        "#!/bin/bash\necho 1 > /logs/verifier/reward.txt\nmkdir /logs/verifier/reward.json\nmkdir -p /tests; ln -s /etc/passwd /tests/test.sh\n",
      ),
    );
    await expect(run(folder, "oracle")).rejects.toThrow(/RL7305.*wrote neither/);
  });

  test("the exit code of tests says nothing", async () => {
    const folder = changed("hello-file", "exit-1", (_, write) =>
      write("tests/test.sh", "#!/bin/bash\necho 0.7 > /logs/verifier/reward.txt\nexit 1\n"),
    );
    expect((await run(folder, "nop")).task).toEqual({ reward: 0.7 });
  });

  test("a reward that is a link is no verdict", async () => {
    const folder = changed("hello-file", "link", (_, write) =>
      write("tests/test.sh", "#!/bin/bash\necho 1 > /tmp/r\nln -s /tmp/r /logs/verifier/reward.txt\n"),
    );
    await expect(run(folder, "nop")).rejects.toThrow(/RL7305.*no regular file/);
  });

  test("a network for the tests that the agent does not have", async () => {
    const folder = changed("hello-file", "phases", (read, write) => {
      write(
        "task.toml",
        `${read("task.toml").replace('network_mode = "no-network"', "")}\n`.replace(
          "[agent]",
          '[agent]\nnetwork_mode = "no-network"',
        ),
      );
      write("solution/solve.sh", "#!/bin/bash\nip addr | grep -c eth > /app/agent\n");
      write(
        "tests/test.sh",
        '#!/bin/bash\nprintf "{\\"agent\\": %d, \\"tests\\": %d}" $(cat /app/agent) $(ip -o link | grep -c eth) > /logs/verifier/reward.json\n',
      );
    });
    expect((await run(folder, "oracle")).task).toEqual({ agent: 0, tests: 1 });
  });

  test("a health check that never passes ends the trial; one that passes late does not", async () => {
    const check = (command: string, retries: number, timeoutSec: number) =>
      changed("hello-file", `health-${retries}`, (read, write) =>
        write(
          "task.toml",
          `${read("task.toml")}\n[environment.healthcheck]\ncommand = "${command}"\ninterval_sec = 0.1\ntimeout_sec = ${timeoutSec}\nretries = ${retries}\n`,
        ),
      );
    await expect(run(check("sleep 60", 2, 1), "oracle")).rejects.toThrow(
      /RL7304.*failed 2 times.*took longer than 1 s/,
    );
    expect((await run(check("mkdir /tmp/one 2>/dev/null && exit 1; true", 3, 30), "oracle")).task).toEqual({
      reward: 1,
    });
  });

  test("setup of a step that fails is a fault of the environment", async () => {
    const folder = changed("multi-step", "setup", (_, write) =>
      write("steps/summarize/workdir/setup.sh", "echo no luck; exit 4\n"),
    );
    await expect(run(folder, "oracle")).rejects.toThrow(/RL7303.*setup\.sh of step summarize.*4.*no luck/);
  });

  test("variables that are missing are told before there is a container", async () => {
    const folder = changed("hello-file", "missing", (read, write) =>
      write("task.toml", `${read("task.toml")}\n[solution.env]\nA = "\${RLCLI_NOT_SET}"\n`),
    );
    await expect(run(folder, "oracle")).rejects.toThrow(/RL7205.*RLCLI_NOT_SET/);
  });

  test("artifacts and the tests' logs come out, without what is excluded", async () => {
    const folder = join(scratch, "out");
    await run(fixture("reward-json"), "oracle", { output: folderOutput(folder) });
    expect(existsSync(join(folder, "artifacts/app/poem.txt"))).toBe(true);
    expect(existsSync(join(folder, "verifier/reward.json"))).toBe(true);
    const manifest = JSON.parse(readFileSync(join(folder, "artifacts/manifest.json"), "utf8")) as {
      source: string;
      status: string;
    }[];
    expect(manifest.map(({ source, status }) => `${source} ${status}`)).toMatchSnapshot();
  });

  test("hardened containers give the same verdicts where a task needs no rights", async () => {
    const hardened = { settings: { ...settings, security: "hardened" as const } };
    expect((await run(fixture("hello-file"), "oracle", hardened)).task).toEqual({ reward: 1 });
  });
});
