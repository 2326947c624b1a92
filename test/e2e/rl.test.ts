/** Reinforcement learning through the real program: train, measure, deploy, roll back, look at answers, judge them anew, finish. */
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { TestProject, until } from "./project.ts";
import { GRADER, rlProject } from "./rl-project.ts";

const lines = (text: string): Record<string, unknown>[] =>
  text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, unknown>);

describe("a project of reinforcement learning", () => {
  let project: TestProject;
  let applied: string;
  beforeAll(() => {
    project = rlProject();
    applied = project.ok("apply", "-y");
  });
  afterAll(() => project.close());

  test("apply trains, measures and deploys; then there is nothing to do", () => {
    expect(applied).toContain("Apply complete: 5 done.");
    expect(applied).toMatch(/reward of run\.agent\n +\d\.\d{3} /);
    expect(applied).toMatch(/eval\.held: \d\.\d{3} at step 0 -> \d\.\d{3} at step 4/);
    expect(project.actions()).toEqual({});
    const status = project.ok("status");
    expect(status).toMatch(/run\.agent +ready +step 4, reward \d\.\d{3}, eval \d\.\d{3}/);
    expect(status).toMatch(/eval\.held +passed +step 4: reward \d\.\d{3}/);
    expect(status).toMatch(/deployment\.live +ready +run\.agent at step 4, since \d{4}-/);
    expect(project.ok("logs", "agent")).toMatch(/step 4\/4 reward \d\.\d{3} eval \d\.\d{3}/);
    expect(Number(project.ok("output", "run.agent.reward"))).toBeGreaterThan(0);
    expect(project.ok("output", "deployment.live.checkpoint")).toBe(project.ok("output", "run.agent.checkpoint"));
  });

  test("rollouts: the worst and the best of a step, one task, an eval's, and what is not there", () => {
    const rewards = (...args: string[]) =>
      lines(project.ok("rollouts", "agent", "--json", ...args)).map((a) => a.reward);
    const all = rewards("--step", "2", "--limit", "100") as number[];
    expect(all).toHaveLength(8);
    const sorted = [...all].sort((a, b) => a - b);
    expect(rewards("--step", "2", "--worst", "3")).toEqual(sorted.slice(0, 3));
    expect(rewards("--step", "2", "--best", "2")).toEqual(sorted.reverse().slice(0, 2));
    const text = project.ok("rollouts", "agent", "--step", "2");
    expect(text).toMatch(/^run\.agent, step 2: 8 answers, reward /);
    expect(text).toContain("3 more:");
    const none = project.ok("rollouts", "agent", "--step", "2", "--lost");
    expect(none).toMatch(/8 answers, .*none\s+of\s+them\s+like\s+that\n/);
    expect(none).not.toContain("more:");
    expect(text).toContain("asked   <|im_start|>user");
    const [first] = lines(project.ok("rollouts", "eval.held", "--json"));
    expect(first).toMatchObject({
      step: 4,
      task: 0,
      turns: [{ answer: expect.any(String), tokens: expect.any(Number) }],
    });
    expect(lines(project.ok("rollouts", "eval.held", "--json", "--step", "2"))[0]).toMatchObject({ step: 2 });
    // As tasks with names are written.
    const [hash] = readdirSync(join(project.folder, ".rlcli/evals/held"));
    const attempts = `.rlcli/evals/held/${hash}/attempts.jsonl`;
    const kept = readFileSync(join(project.folder, attempts), "utf8");
    project.write(attempts, kept.replace(/"task":(\d+)/g, '"task":$1,"taskName":"sum-$1"'));
    expect(lines(project.ok("rollouts", "eval.held", "--json", "--task", "sum-1"))[0]).toMatchObject({
      task: 1,
      taskName: "sum-1",
    });
    expect(project.run(["rollouts", "eval.held", "--task", "sum-x"]).err).toMatch(/no task `sum-x`.*Did you mean/);
    project.write(attempts, kept);
    const missing = project.run(["rollouts", "agent", "--step", "9"]);
    expect(missing.code).toBe(1);
    expect(missing.err).toContain("It has 1 to 4.");
  });

  test("regrade judges saved answers by the grader of now, and changes no record", () => {
    const before = readFileSync(join(project.runFolder("agent"), "rollouts/000002.jsonl"), "utf8");
    expect(project.ok("regrade", "agent")).toContain("0 of 32 rewards changed");
    const grader = readFileSync(join(project.folder, "grade.mjs"), "utf8");
    project.write("grade.mjs", grader.replace("reward: codes", "reward: 10 + codes"));
    const said = JSON.parse(project.ok("regrade", "agent", "--steps", "2..3", "-o", "out/regraded.jsonl", "--json"));
    expect(said.steps).toMatchObject([
      { step: 2, attempts: 8, judged: 8, changed: 8 },
      { step: 3, attempts: 8, judged: 8, changed: 8 },
    ]);
    for (const { before: was, after } of said.steps) expect(after).toBeCloseTo(was + 10);
    const [header, ...written] = lines(readFileSync(join(project.folder, "out/regraded.jsonl"), "utf8"));
    expect(header).toEqual({ formatVersion: 2 });
    expect(written).toHaveLength(16);
    for (const one of written) expect(one.reward).toBeCloseTo((one.before as number) + 10);
    expect(readFileSync(join(project.runFolder("agent"), "rollouts/000002.jsonl"), "utf8")).toBe(before);
    project.write("grade.mjs", "no code {");
    expect(project.run(["regrade", "agent"]).err).toContain("RL7102");
    project.write("grade.mjs", grader);
    expect(project.run(["regrade", "agent", "--steps", "a"]).err).toContain("RL9003");
  });

  test("eval measures anew on demand to the same numbers, and fails where a threshold is not met", () => {
    const measured = (...args: string[]) => JSON.parse(project.run(["eval", "--json", ...args]).out).evals[0];
    const kept = measured();
    expect(kept).toMatchObject({ name: "eval.held", what: "run.agent at step 4", passed: true, tasks: 4 });
    expect(measured("held", "--fresh").metrics).toEqual(kept.metrics);
    project.edit("rlcli.yaml", "min: -1", "min: 5");
    const failed = project.run(["eval", "held"]);
    expect(failed.code).toBe(1);
    expect(failed.out).toMatch(/eval\.held {2}run\.agent at step 4 {2}not passed/);
    expect(failed.out).toMatch(/reward +\d\.\d{3}.* at least 5: NO/);
    expect(project.ok("status")).toMatch(/deployment\.live +ready .*eval\.held does not pass any more/);
    expect(failed.out).toMatch(/even +\d\.\d{3} {2}\(2 tasks\)/);
    project.edit("rlcli.yaml", "min: 5", "min: -1");
    expect(project.run(["eval", "held"]).code).toBe(0);
    rmSync(join(project.folder, ".rlcli/evals"), { recursive: true });
    expect(project.actions()).toEqual({ "eval.held": "create" });
    project.ok("apply", "-y");
    expect(measured().metrics).toEqual(kept.metrics);
  });

  test("eval without an eval in the spec: a run, and what needs to be trained first", () => {
    const args = ["eval", "--run", "agent@2", "--dataset", "sums.jsonl", "--env", "module", "--module", "grade.mjs"];
    const result = JSON.parse(project.ok(...args, "--tasks", "3", "--max-tokens", "4", "--json")).evals[0];
    expect(result).toMatchObject({ what: "run.agent at step 2", tasks: 3, lost: 0 });
    expect(project.run([...args, "--tasks", "3", "--max-tokens", "4", "--min-reward", "9"]).code).toBe(1);
    project.edit("rlcli.yaml", "learning_rate: 1e-3", "learning_rate: 2e-3");
    const untrained = project.run(["eval"]);
    expect(untrained.code).toBe(1);
    expect(untrained.err).toContain("run.agent is to be trained before eval.held can measure it");
    project.edit("rlcli.yaml", "learning_rate: 2e-3", "learning_rate: 1e-3");
  });

  test("a deployment is held where its eval fails, moves where it passes, and goes back by hand", () => {
    const place = () => project.record("deployment.live");
    const first = place();
    project.edit("rlcli.yaml", "learning_rate: 1e-3", "learning_rate: 2e-3");
    project.edit("rlcli.yaml", "min: -1", "min: 5");
    expect(project.run(["apply", "-y"]).err).toContain("held at step 4 of run.agent");
    expect(place().hash).toBe(first.hash);
    expect(project.ok("deployment", "list").replaceAll(/\s+/g, " ")).toContain("eval.held did not pass: reward is");
    expect(project.ok("status")).toMatch(/deployment\.live +held +/);
    // Held is no failure, unless the spec says that it is one: each apply says so then.
    expect(project.run(["apply", "-y"]).code).toBe(0);
    project.edit("rlcli.yaml", "requires: [held]", "requires: [held], on_fail: error");
    for (const _ of [1, 2]) {
      const failed = project.run(["apply", "-y"]);
      expect(failed.code).toBe(1);
      expect(failed.err).toMatch(/RL2103.*/);
    }
    expect(place().hash).toBe(first.hash);
    project.edit("rlcli.yaml", "min: 5", "min: -1");
    project.ok("apply", "-y");
    const second = place();
    expect(second.hash).not.toBe(first.hash);
    expect(second.results.history).toMatchObject([{ hash: first.hash }]);

    expect(project.run(["rollback", "live"]).err).toContain("RL9008");
    expect(project.ok("rollback", "live", "-y")).toContain(first.results.sampler as string);
    expect(place()).toMatchObject({ hash: first.hash, results: { rolledBackFrom: second.hash } });
    expect(project.actions()).toEqual({});
    expect(project.run(["plan"]).err.replaceAll(/\s+/g, " ")).toContain("was rolled back from this checkpoint by hand");
    expect(project.run(["rollback", "live", "-y"]).err).toContain("RL9009");
    project.ok("rollback", "live", "--to", "1", "-y");
    expect(place().hash).toBe(second.hash);
    expect(place().results.rolledBackFrom).toBeUndefined();
    expect(project.actions()).toEqual({});
  });

  test("finish accepts a kept step as the last: the plan goes back to it and never on", () => {
    const refused = project.run(["run", "finish", "agent", "--at", "9"]);
    expect(refused.code).toBe(1);
    expect(refused.err).toContain("It keeps");
    expect(project.ok("run", "finish", "agent", "--at", "3")).toContain("Step 3 is now the last of run.agent");
    expect(["resume", "restore"]).toContain(project.actions()["run.agent"]);
    project.ok("apply", "-y");
    expect(project.record("run.agent").results).toMatchObject({ step: 3, sampler: expect.any(String) });
    expect(project.record("eval.held").results.step).toBe(3);
    expect(project.actions()).toEqual({});
    expect(project.ok("run", "finish", "agent", "--at", "3")).toContain("was already");
    const info = JSON.parse(project.ok("run", "info", "agent", "--json"));
    expect(info.checkpoints.filter((c: { final?: unknown }) => c.final)).toMatchObject([{ step: 3 }]);
    expect(project.ok("checkpoint", "list", "agent")).toMatch(/run\.agent@3 .* final(, best)?, deployment\.live/);
    expect(project.ok("run", "list")).toMatch(/run\.agent {2,}rl {2,}ready/);
  });

  test("Ctrl-C in a measurement is no bug of ours, and the server stops computing what nobody wants", async () => {
    const size = ["--samples", "512", "--max-tokens", "64"];
    const measuring = project.start("eval", "--run", "agent", "--dataset", "sums.jsonl", "--env", "match", ...size);
    await new Promise<void>((resolve) => {
      let said = "";
      measuring.stderr?.on("data", (chunk) => {
        said += chunk;
        if (said.includes("512 answers each")) resolve();
      });
    });
    measuring.kill("SIGINT");
    const { code, err } = await measuring.ended;
    expect(code).toBe(1);
    expect(err).toContain("Interrupted");
    expect(err).not.toMatch(/^\s+at /m);
    const { servers } = JSON.parse(project.ok("serve", "list", "--json"));
    expect(servers[0]).toMatchObject({ state: "running", sessions: 0 });
  });
});

describe("train rl", () => {
  const SL = { "sums.jsonl": '{"question":"1+1=","answer":"2"}\n{"question":"1+2=","answer":"3"}\n' };

  function newProject(): TestProject {
    const project = new TestProject(SL);
    onTestFinished(() => project.close());
    return project;
  }

  const TRAIN = ["train", "rl", "--dataset", "sums.jsonl", "--env", "match", "--loss", "gspo"];

  test("prints the spec that it stands for, with every option in its place", () => {
    const project = newProject();
    const options = [
      "--clip-low",
      "0.9",
      "--steps",
      "2",
      "--group-size",
      "4",
      "--batch-size",
      "2",
      "--eval-every",
      "1",
    ];
    const spec = project.ok(...TRAIN, "--model", "builtin:tiny", ...options, "--mode", "contains", "--emit-spec");
    project.write("rlcli.yaml", spec);
    expect(project.ok("validate")).toContain("Valid: 6 blocks");
    expect(spec).toContain("clip_low_threshold: 0.9");
    expect(spec).toContain("groups_per_batch: 2");
    expect(project.actions()).toMatchObject({ "run.train": "create", "eval.tasks": "create" });
  });

  test("trains, and the same command again has nothing left; more steps extend, and answers can be looked at", () => {
    const project = newProject();
    const command = (steps: string) => {
      const size = ["--group-size", "2", "--groups-per-batch", "2", "--max-tokens", "3", "--save-every", "1"];
      const judged = ["--env", "module", "--module", "grade.mjs"];
      return project.run([...TRAIN, ...judged, "--model", "builtin:tiny", "--steps", steps, ...size]);
    };
    project.write("grade.mjs", GRADER);
    const first = command("1");
    expect(first.code, first.err).toBe(0);
    expect(first.out).toContain("Apply complete: 3 done.");
    expect(command("1").out).toContain("No changes.");
    expect(command("2").out).toContain("1 to extend");
    const [, spec] = /rlcli rollouts train --worst 3 -f (\S+)/.exec(first.out) ?? [];
    expect(lines(project.ok("rollouts", "train", "-f", spec as string, "--json"))).toHaveLength(4);
    project.ok("serve", "stop", "--force", "-f", spec as string);
  });

  test("where nothing can be learned it fails, and says where other commands find it", () => {
    const project = newProject();
    const size = ["--steps", "1", "--group-size", "2", "--max-tokens", "3"];
    const { code, err } = project.run([...TRAIN, "--model", "builtin:tiny", ...size]);
    expect(code).toBe(1);
    expect(err).toContain("RL8103");
    const [, spec] = /spec is (\S+): other commands find it with -f/.exec(err) ?? [];
    expect(lines(project.ok("rollouts", "train", "-f", spec as string, "--json"))).toHaveLength(4);
    project.ok("serve", "stop", "--force", "-f", spec as string);
  });

  test("gspo on a jax server fails before anything starts, with the way out", () => {
    const project = newProject();
    const at = ["--base-url", "http://127.0.0.1:9", "--model", "m", "--backend", "jax", "--dry-run"];
    const { code, err } = project.run([...TRAIN, ...at]);
    expect(code).toBe(1);
    expect(err).toContain("RL8011");
    expect(err.replaceAll(/\s+/g, " ")).toContain("embedded, fsdp, megatron, hosted do. Add --loss-strategy two_pass");
    const option = project.run([...TRAIN, "--model", "builtin:tiny", "--beta", "1"]);
    expect(option.err.replaceAll(/\s+/g, " ")).toContain(
      "has no option `beta`. It has clip_low_threshold, clip_high_threshold.",
    );
  });
});

test("a worker that is killed in the middle of a run resumes to the same weights", async () => {
  const [whole, cut] = [rlProject(), rlProject()];
  onTestFinished(() => Promise.all([whole.close(), cut.close()]).then(() => {}));
  for (const project of [whole, cut]) {
    const text = readFileSync(join(project.folder, "rlcli.yaml"), "utf8");
    project.write("rlcli.yaml", text.replace(/\nevals[\s\S]*/, "\n").replace("steps: 4", "steps: 12"));
  }
  whole.ok("apply", "-y");
  const apply = cut.start("apply", "-y");
  await cut.reachesStep(2, { name: "agent" });
  // Stands still, so that it is not done before that command is.
  process.kill(cut.pid("agent"), "SIGSTOP");
  const early = cut.run(["run", "finish", "agent", "--at", "1"]);
  expect(early.err).toContain("RL3003");
  process.kill(cut.pid("agent"), "SIGKILL");
  const { code } = await apply.ended;
  await until(() => cut.actions()["run.agent"] === "resume" || code === 0);
  cut.ok("apply", "-y");
  expect(cut.weights("run.agent")).toEqual(whole.weights("run.agent"));
});
