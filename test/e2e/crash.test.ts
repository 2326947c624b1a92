/** Whatever dies, and when: nothing is lost, nothing is done twice, and the weights come out the same to the last bit. */
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { constants } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { isAlive, processIdentity } from "../../src/process.ts";
import { SPEC, TestProject, until } from "./project.ts";

const LONG = SPEC.replace("steps: 6", "steps: 40").replace("save_every: 2", "save_every: 10");

function newProject(spec = LONG): TestProject {
  const project = new TestProject();
  project.write("rlcli.yaml", spec);
  onTestFinished(() => project.close());
  return project;
}

/** Lines of the journal that tell of done steps, in order. */
function doneSteps(project: TestProject): number[] {
  const entries = readFileSync(join(project.runFolder("count"), "journal.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  let steps: number[] = [];
  for (const entry of entries) {
    if (entry.t === "rollback") steps = steps.filter((step) => step <= entry.to);
    if (entry.t === "done") steps.push(entry.step);
  }
  return steps;
}

/** Whether a process that stands still has been told to stop (proc(5): signals pending for it, by number from 1). */
function isToldToStop(pid: number): boolean {
  const [, pending = "0"] = /^ShdPnd:\s*([0-9a-f]+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return (BigInt(`0x${pending}`) & (1n << BigInt(constants.signals.SIGTERM - 1))) !== 0n;
}

/** Whether all threads of a process stand still: one that does not yet could take a signal that comes now. */
const isStill = (pid: number): boolean =>
  readdirSync(`/proc/${pid}/task`).every((task) =>
    /\) T /.test(readFileSync(`/proc/${pid}/task/${task}/stat`, "utf8")),
  );

async function standStill(pid: number): Promise<void> {
  process.kill(pid, "SIGSTOP");
  await until(() => isStill(pid));
}

/** Has the worker stand still until it has been told to stop: it could reach its end before. */
async function untilTold(project: TestProject, tell: () => void): Promise<void> {
  const worker = project.pid();
  await standStill(worker);
  tell();
  await until(() => isToldToStop(worker));
  process.kill(worker, "SIGCONT");
}

const upTo = (n: number) => Array.from({ length: n }, (_, at) => at + 1);

describe("a run that is cut", () => {
  let whole: Buffer;
  beforeAll(async () => {
    const project = new TestProject();
    project.write("rlcli.yaml", LONG);
    project.ok("apply", "-y");
    whole = project.weights();
    await project.close();
  });
  afterAll(() => expect(whole.length).toBeGreaterThan(1000));

  test("worker killed: apply says so, plan says resume, the result is the same", async () => {
    const project = newProject();
    const apply = project.start("apply", "-y");
    await project.reachesStep(13);
    process.kill(project.pid(), "SIGKILL");
    const { code, err } = await apply.ended;
    expect(code).toBe(1);
    expect(err).toContain("RL4003");
    expect(project.actions()).toEqual({ "run.count": "resume" });
    project.ok("apply", "-y");
    expect(doneSteps(project)).toEqual(upTo(40));
    expect(project.weights().equals(whole)).toBe(true);
    expect(project.actions()).toEqual({});
  });

  test("server killed while it trains: the run brings it back and goes on", async () => {
    const project = newProject();
    const apply = project.start("apply", "-y");
    await project.reachesStep(17);
    process.kill(project.serverPid(), "SIGKILL");
    const { code, err } = await apply.ended;
    if (code !== 0) {
      expect(err).toMatch(/RL[58]\d{3}/);
      project.ok("apply", "-y");
    }
    expect(doneSteps(project)).toEqual(upTo(40));
    expect(project.weights().equals(whole)).toBe(true);
  });

  test("worker and server killed: back to the last checkpoint", async () => {
    const project = newProject();
    const apply = project.start("apply", "-y");
    await project.reachesStep(25);
    process.kill(project.pid(), "SIGKILL");
    process.kill(project.serverPid(), "SIGKILL");
    await apply.ended;
    expect(project.actions()).toEqual({ "server.default": "restart", "run.count": "resume" });
    project.ok("apply", "-y");
    expect(doneSteps(project)).toEqual(upTo(40));
    expect(project.weights().equals(whole)).toBe(true);
  });

  test("apply killed: the worker goes on by itself, and another apply watches it", async () => {
    const project = newProject();
    const apply = project.start("apply", "-y");
    await project.reachesStep(3);
    apply.kill("SIGKILL");
    await apply.ended;
    // Stands still, so that it is not done before the plan is.
    await standStill(project.pid());
    expect(project.run(["plan"]).out).toContain("in progress");
    process.kill(project.pid(), "SIGCONT");
    project.ok("apply", "-y");
    expect(project.weights().equals(whole)).toBe(true);
    expect(project.actions()).toEqual({});
  });

  test.each(["SIGINT", "SIGTERM"] as const)(
    "%s: stops at the end of the step with a checkpoint; resumes exactly",
    async (signal) => {
      const project = newProject();
      const apply = project.start("apply", "-y");
      await project.reachesStep(5);
      await untilTold(project, () => apply.kill(signal));
      const { code, out } = await apply.ended;
      expect(code).toBe(1);
      expect(out).toContain("Apply stopped");
      const { status, results } = project.record("run.count");
      expect(status).toBe("interrupted");
      expect(results.training).toMatch(new RegExp(`-${results.step}$`));
      project.ok("apply", "-y");
      expect(doneSteps(project)).toEqual(upTo(40));
      expect(project.weights().equals(whole)).toBe(true);
    },
  );

  test("a second Ctrl-C stops at once and takes the worker along", async () => {
    const project = newProject();
    const apply = project.start("apply", "-y");
    await project.reachesStep(5);
    const worker = processIdentity(project.pid())!;
    apply.kill("SIGINT");
    await sleep(20);
    apply.kill("SIGINT");
    const { code } = await apply.ended;
    expect([1, 130]).toContain(code);
    await until(() => !isAlive(worker));
    project.ok("apply", "-y");
    expect(project.weights().equals(whole)).toBe(true);
  });

  test("two applies at once: both end well, and everything is done once", async () => {
    const project = newProject();
    const [one, two] = [project.start("apply", "-y"), project.start("apply", "-y")];
    for (const { code, err } of await Promise.all([one.ended, two.ended])) expect(code, err).toBe(0);
    expect(doneSteps(project)).toEqual(upTo(40));
    expect(project.weights().equals(whole)).toBe(true);
    expect(project.actions()).toEqual({});
  });

  test("--detach leaves the worker; logs -f follows it to the end", async () => {
    const project = newProject();
    expect(project.ok("apply", "-y", "--detach")).toContain("running in the background");
    expect(project.ok("logs", "-f", "count")).toContain("complete at step 40");
    await until(() => project.record("run.count").status === "ready");
    expect(project.weights().equals(whole)).toBe(true);
  });

  test("a detached run is stopped by name, and what starts from it waits for another apply", async () => {
    const project = newProject(
      `${LONG}  after: { type: sl, dataset: numbers, from: count, steps: 2, batch_size: 4 }\n`,
    );
    const detached = project.run(["apply", "-y", "--detach"]);
    expect(detached.code).toBe(0);
    expect(detached.out).toContain("1 waiting for it");
    await project.reachesStep(3);
    let stopping: ReturnType<TestProject["start"]> | undefined;
    await untilTold(project, () => {
      stopping = project.start("stop", "count");
    });
    expect(await stopping?.ended).toMatchObject({
      code: 0,
      out: expect.stringMatching(/run\.count has stopped at step \d+/),
    });
    expect(project.record("run.count").status).toBe("interrupted");
    expect(project.run(["stop", "count"]).err).toContain("RL9009");
    expect(project.ok("stop")).toContain("No run is being worked on.");
    project.ok("apply", "-y");
    expect(project.weights().equals(whole)).toBe(true);
  });
});

describe("what is damaged", () => {
  test("a checkpoint's file: resume says which one and goes on from the one before", async () => {
    const project = newProject(LONG);
    const apply = project.start("apply", "-y");
    await project.reachesStep(25);
    process.kill(project.pid(), "SIGKILL");
    process.kill(project.serverPid(), "SIGKILL");
    await apply.ended;
    const lines = readFileSync(join(project.runFolder("count"), "checkpoints.jsonl"), "utf8")
      .trim()
      .split("\n")
      .slice(1)
      .map((line) => JSON.parse(line));
    const last = lines.at(-1).training as string;
    const [run, kind, name] = last.slice("tinker://".length).split("/") as [string, string, string];
    truncateSync(
      join(
        project.folder,
        ".rlcli/servers/default/checkpoints",
        run.replaceAll(":", "_"),
        kind,
        name,
        "model.safetensors",
      ),
      100,
    );
    const { code, err } = project.run(["apply", "-y"]);
    if (code !== 0) expect(err).toContain(name);
  });

  test("the journal: a diagnostic with file and line, nothing is trained over it, --replace begins anew", async () => {
    const project = newProject(SPEC);
    project.ok("apply", "-y");
    const journal = join(project.runFolder("count"), "journal.jsonl");
    const lines = readFileSync(journal, "utf8").split("\n");
    lines[3] = "{ damaged";
    writeFileSync(journal, lines.join("\n"));
    project.edit("rlcli.yaml", "steps: 6", "steps: 8");
    const { code, err } = project.run(["apply", "-y"]);
    expect(code).toBe(1);
    expect(err).toContain("RL3007");
    expect(err.replaceAll(/\s+/g, "")).toContain("journal.jsonl:4");
    expect(project.run(["plan"]).err).toContain("RL3007");
    project.ok("apply", "-y", "--replace", "run.count");
    expect(project.record("run.count")).toMatchObject({ incarnation: 2, status: "ready" });
    expect(project.actions()).toEqual({});
  });

  test("a state record: named with the intact version before it; removing the file mends it", () => {
    const project = newProject(SPEC);
    project.ok("apply", "-y");
    const { version } = project.record("run.count");
    const file = join(project.folder, `.rlcli/state/records/run.count@${version}.json`);
    writeFileSync(file, '{"write":');
    const { code, err } = project.run(["plan"]);
    expect(code).toBe(1);
    expect(err).toContain("RL3001");
    rmSync(file);
    expect(Object.keys(project.actions())).toEqual(["run.count"]);
    project.ok("apply", "-y");
    expect(project.actions()).toEqual({});
  });
});

describe("what cannot be had", () => {
  test("a port in use", async () => {
    const { createServer } = await import("node:net");
    const server = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => server.once("listening", resolve));
    const { port } = server.address() as { port: number };
    try {
      const project = newProject(SPEC.replace("model: builtin:tiny", `model: builtin:tiny, port: ${port}`));
      const { code, err } = project.run(["apply", "-y"]);
      expect(code).toBe(1);
      expect(err).toContain("RL5004");
      expect(err).toContain(String(port));
    } finally {
      server.close();
    }
  });

  test("a state that cannot be written at the end: a recovery file, and state push puts it back", async () => {
    const project = newProject(LONG);
    const apply = project.start("apply", "-y");
    await project.reachesStep(1);
    // A file where the folder was: not writable for anyone.
    const records = join(project.folder, ".rlcli/state/records");
    const { renameSync } = await import("node:fs");
    renameSync(records, `${records}.away`);
    writeFileSync(records, "");
    const { code, err } = await apply.ended;
    expect(code).toBe(1);
    expect(err).toMatch(/RL300[48]/);
    const file = /rlcli state push (\S+?\.json)/.exec(err.replaceAll(/\n\s*/g, " "))?.[1];
    expect(file).toBeDefined();
    rmSync(records);
    renameSync(`${records}.away`, records);
    project.ok("state", "push", file!);
    expect(project.record("run.count")).toMatchObject({ status: "ready", results: { step: 40 } });
    expect(project.actions()).toEqual({});
  });

  test("a dataset that is not there, and one that is no conversations", () => {
    const project = newProject(SPEC);
    rmSync(join(project.folder, "numbers.jsonl"));
    const missing = project.run(["plan"]);
    expect(missing.code).toBe(1);
    expect(missing.err).toMatch(/RL6\d{3}/);
    expect(missing.err).toContain("rlcli.yaml:5");
    project.write("numbers.jsonl", "not json\n{}\n");
    const damaged = project.run(["apply", "-y"]);
    expect(damaged.code).toBe(1);
    expect(damaged.err).toContain("numbers.jsonl:1");
  });
});
