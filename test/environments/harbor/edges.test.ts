/** What agents and tasks do to containers that nobody thought of: the document's edge cases that need a daemon and have no other home. */
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { checkTrial } from "../../../src/environments/harbor/oracle.ts";
import { loadTask } from "../../../src/environments/harbor/task.ts";
import { Trial, type TrialDeps } from "../../../src/environments/harbor/trial.ts";
import { expectNothingLeft, findDocker, HARBOR_FIXTURES, openTestHost, type TestHost } from "../../support/docker.ts";

const docker = await findDocker();
const signal = new AbortController().signal;
const settings: TrialDeps["settings"] = {
  memoryBytes: 256 << 20,
  pids: 256,
  network: "task",
  security: "compat",
  lifetimeMs: 300_000,
  commandTimeoutMs: 20_000,
  agentTimeoutMs: Number.POSITIVE_INFINITY,
};

describe.skipIf(!docker)("edge cases on a Docker daemon (skipped where none runs)", () => {
  let opened: TestHost;
  const scratch = mkdtempSync(join(tmpdir(), "harbor-edges-"));
  beforeAll(async () => {
    opened = await openTestHost("edges.test");
  });
  afterAll(async () => {
    await opened.close();
    rmSync(scratch, { recursive: true, force: true });
    await expectNothingLeft(docker!, "edges.test");
  });

  /** `hello-file` with some files changed; `append` is added to its task.toml. */
  function task(name: string, files: Readonly<Record<string, string>>, append = "", from = "hello-file"): string {
    const folder = join(scratch, name);
    cpSync(join(HARBOR_FIXTURES, from), folder, { recursive: true });
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), text);
    }
    writeFileSync(join(folder, "task.toml"), `${readFileSync(join(folder, "task.toml"), "utf8")}\n${append}`);
    return folder;
  }
  const script = (...lines: readonly string[]) => `#!/bin/bash\n${lines.join("\n")}\n`;
  async function run(folder: string, agent: "oracle" | "nop" = "oracle", more: Partial<TrialDeps> = {}) {
    const loaded = loadTask(folder);
    if (!loaded.task) throw new Error(JSON.stringify(loaded.diagnostics));
    const trial = new Trial(loaded.task, { host: opened.host, settings, env: {}, signal, ...more });
    try {
      return await checkTrial(trial, agent, signal);
    } finally {
      await trial.close();
    }
  }

  test.each<[string, string, RegExp]>([
    ["is empty", ": > /logs/verifier/reward.txt", /RL7305.*reward\.txt is empty/],
    [
      "has 5 MB",
      "head -c 5000000 /dev/zero | tr '\\0' 1 > /logs/verifier/reward.txt",
      /RL7305.*reward\.txt is larger than 1 MiB/,
    ],
    ["is a fifo", "mkfifo /logs/verifier/reward.json", /RL7305.*no regular file/],
    ["is a folder", "mkdir /logs/verifier/reward.json", /RL7305.*no regular file/],
  ])("a reward file that %s is no verdict, at once", async (name, line, pattern) => {
    const folder = task(`reward ${name}`.replaceAll(" ", "-"), { "tests/test.sh": script(line) });
    await expect(run(folder, "nop")).rejects.toThrow(pattern);
  });

  test("an agent that deletes programs, temporary files and tests is judged, or lost in words", async () => {
    const nothing = task("rm-tests", { "solution/solve.sh": script("rm -rf /tests /tmp /logs", "mkdir /tmp") });
    expect((await run(nothing)).task).toEqual({ reward: 0 });
    const all = task("rm-bin", { "solution/solve.sh": script("rm -rf /bin /usr/bin /tmp /tests") });
    await expect(run(all)).rejects.toThrow(/RL730[35]/);
  });

  test("an image without bash says so; without setsid and timeout it works", async () => {
    const changed = (command: string) => ({
      "environment/Dockerfile": `FROM rlcli-test/base:1\nWORKDIR /app\nRUN ${command}\n`,
    });
    const noBash = task("no-bash", changed("busybox ln -sf busybox /usr/bin/sh && busybox rm /usr/bin/bash"));
    await expect(run(noBash)).rejects.toThrow(/RL7303.*bash/);
    const folder = task("no-setsid", changed("rm /usr/bin/setsid /usr/bin/timeout"));
    expect((await run(folder)).task).toEqual({ reward: 1 });
  });

  test("a sandbox whose life ends in the middle is a fault, and is gone by itself", async () => {
    const folder = task("lifetime", { "solution/solve.sh": script("sleep 60") });
    const began = performance.now();
    const short = { settings: { ...settings, lifetimeMs: 3000 } };
    await expect(run(folder, "oracle", short)).rejects.toThrow(/RL7303/);
    expect(performance.now() - began).toBeLessThan(55_000);
  });

  test("more CPUs than the host has are as many as it has", async () => {
    const folder = task("cpus", {});
    const toml = readFileSync(join(folder, "task.toml"), "utf8");
    writeFileSync(join(folder, "task.toml"), toml.replace("cpus = 1", "cpus = 4096"));
    expect((await run(folder)).task).toEqual({ reward: 1 });
  });

  test("a container that is removed from outside in the middle of a command is a fault, not a hang", async () => {
    const folder = task("removed", { "solution/solve.sh": script("sleep 60") });
    const started = opened.host.start.bind(opened.host);
    opened.host.start = async (...args) => {
      const box = await started(...args);
      setTimeout(
        () =>
          docker!
            .getContainer(box.name)
            .remove({ force: true })
            .catch(() => {}),
        1500,
      );
      return box;
    };
    try {
      const began = performance.now();
      await expect(run(folder)).rejects.toThrow(/RL7303/);
      expect(performance.now() - began).toBeLessThan(55_000);
    } finally {
      opened.host.start = started;
    }
  });

  test.skipIf(!process.env.RLCLI_TEST_ALL)(
    "a hundred trials in a row leave nothing and hold nothing",
    {
      timeout: 900_000,
    },
    async () => {
      const folder = task("hundred", {});
      const held = () => process.getActiveResourcesInfo().filter((name) => /TCP|Pipe|Process|FS/.test(name)).length;
      const open = () => readdirSync("/proc/self/fd").length;
      await run(folder);
      const before = { held: held(), open: open() };
      for (let trial = 0; trial < 100; trial += 1) expect((await run(folder)).task).toEqual({ reward: 1 });
      expect(held()).toBeLessThanOrEqual(before.held + 4);
      expect(open()).toBeLessThanOrEqual(before.open + 8);
      await expectNothingLeft(docker!, "edges.test");
    },
  );

  /** The server may be a moment from listening yet. */
  const ASK =
    'for i in $(seq 50); do [ "$(nc 127.0.0.1 8080)" = alive ] && { echo 1 > /logs/verifier/reward.txt; exit; }; sleep 0.1; done; echo 0 > /logs/verifier/reward.txt';

  test.each([
    ["with nohup", "nohup nc -l -p 8080 -e echo alive &"],
    ["with its output elsewhere", "nc -l -p 8080 -e echo alive >/tmp/log 2>&1 &"],
    ["in a session of its own", "setsid nc -l -p 8080 -e echo alive &"],
  ])("a server that was started %s answers the tests", async (name, line) => {
    const folder = task(`server ${name}`.replaceAll(" ", "-"), {
      "solution/solve.sh": script(line),
      "tests/test.sh": script(ASK),
    });
    expect((await run(folder)).task).toEqual({ reward: 1 });
  });

  describe("tests in a container of their own", () => {
    const SEPARATE =
      '[verifier.env]\nMARK = "seen"\n[verifier.environment]\nmemory_mb = 128\nnetwork_mode = "no-network"\n';
    const judge = (check: string) =>
      script(`if ${check}; then echo 1; else echo 0; fi > /logs/verifier/reward.txt`, "ls -laR /app /logs; env");

    test("only artifacts cross over, at their paths, and the agent's container is gone", async () => {
      const names: string[] = [];
      const folder = task(
        "separate",
        {
          "solution/solve.sh": script(
            "mkdir -p /app/out/deep; echo kept > /app/out/deep/a; echo no > /app/out/a.tmp; chmod 755 /app/out/deep/a",
            "ln -s /etc/passwd /app/out/link; echo lost > /app/other; echo one > /var/one; echo log > /logs/artifacts/l",
            "sleep 1000 &",
          ),
          "tests/test.sh": judge(
            '[ "$(cat /app/out/deep/a /var/one /logs/artifacts/l)" = "$(printf \'kept\\none\\nlog\')" ] && [ -x /app/out/deep/a ] && [ ! -e /app/other ] && [ ! -e /app/out/a.tmp ] && [ ! -L /app/out/link ] && [ "$MARK" = seen ] && [ "$(ip -o link | grep -c eth)" = 0 ] && ! ps | grep -q "[s]leep 1000"',
          ),
        },
        SEPARATE,
      );
      const toml = readFileSync(join(folder, "task.toml"), "utf8");
      writeFileSync(
        join(folder, "task.toml"),
        `artifacts = [{ source = "/app/out", exclude = ["*.tmp"] }, "/var/one", "/not/there"]\n${toml}`,
      );
      const one = await openTestHost("edges.test", { concurrency: 1 });
      const start = one.host.start.bind(one.host);
      one.host.start = async (...args) => {
        const box = await start(...args);
        names.push(box.name);
        return box;
      };
      try {
        expect((await run(folder, "oracle", { host: one.host })).task).toEqual({ reward: 1 });
        expect(new Set(names).size).toBe(2);
      } finally {
        await one.close();
      }
    });

    test("an image of tests/Dockerfile holds the tests, and nothing is copied into it", async () => {
      const folder = task(
        "bundled",
        {
          "solution/solve.sh": script("echo mine > /logs/artifacts/answer"),
          "tests/Dockerfile": "FROM rlcli-test/base:1\nCOPY judge.sh /tests/test.sh\nRUN chmod +x /tests/test.sh\n",
          "tests/judge.sh": judge('[ "$(cat /logs/artifacts/answer)" = mine ] && [ "$(ls /tests)" = test.sh ]'),
        },
        "",
      );
      rmSync(join(folder, "tests/test.sh"));
      const toml = readFileSync(join(folder, "task.toml"), "utf8");
      writeFileSync(join(folder, "task.toml"), toml.replace("[verifier]", '[verifier]\nenvironment_mode = "separate"'));
      expect((await run(folder)).task).toEqual({ reward: 1 });
      expect((await run(folder, "nop")).task).toEqual({ reward: 0 });
    });

    test("a verifier that cannot be built is a fault of the environment", async () => {
      const folder = task("broken-verifier", { "tests/Dockerfile": "FROM rlcli-test/base:1\nRUN exit 9\n" }, SEPARATE);
      await expect(run(folder)).rejects.toThrow(/RL7302[\s\S]*9/);
    });
  });
});
