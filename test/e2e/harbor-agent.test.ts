/**
 * The acceptance run of agents in sandboxes: `examples/harbor` on a real daemon, several containers at once, under a scripted policy
 * that solves, fails, blunders and breaks its sandbox on schedule. Rewards are right, a broken sandbox costs one rollout, and nothing
 * is left. RLCLI_TEST_ALL=1 makes it a longer run.
 */
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { RUN } from "../../src/environments/sandbox/labels.ts";
import type { SandboxCount } from "../../src/run-record.ts";
import { loadRenderer } from "../../src/tokens/load.ts";
import { isLost } from "../../src/training/rl/rollout.ts";
import { readRollouts } from "../../src/training/rl/rollout-files.ts";
import { faultsOf } from "../support/atif.ts";
import { expectNothingLeft, findDocker, makeExampleImage } from "../support/docker.ts";
import { type Answer, type PolicyServer, startPolicyServer } from "../support/policy-server.ts";
import { TestProject } from "./project.ts";

const EXAMPLE = fileURLToPath(new URL("../../examples/harbor", import.meta.url));
const MODEL = fileURLToPath(new URL("../fixtures/tiny-qwen3", import.meta.url));
const docker = await findDocker();
const canRun = docker !== undefined && (await makeExampleImage());

const SIZE = process.env.RLCLI_TEST_ALL
  ? { steps: 4, group: 8, concurrency: 8 }
  : { steps: 1, group: 4, concurrency: 4 };
const TASKS = readdirSync(join(EXAMPLE, "tasks")).sort();
const read = (path: string) => readFileSync(join(EXAMPLE, "tasks", path), "utf8");
const SOLUTIONS = TASKS.map((name) => ({
  name,
  instruction: read(`${name}/instruction.md`).trim(),
  command: read(`${name}/solution/solve.sh`).split("\n")[1] as string,
}));

/** What an attempt does, by its number in the group; the last of one task kills its container from inside. */
const PLANS = ["solves", "fails", "blunders", "does nothing"] as const;
const BREAKS = { task: "sort-lines", index: SIZE.group - 1 };
const planOf = (task: string, index: number) =>
  task === BREAKS.task && index === BREAKS.index ? "breaks" : PLANS[index % PLANS.length];

const call = (command: string) =>
  `<tool_call>\n${JSON.stringify({ name: "bash", arguments: { command } })}\n</tool_call>`;

describe.skipIf(!canRun)("the acceptance run of agents in sandboxes (skipped where no daemon runs)", () => {
  let policy: PolicyServer;
  let project: TestProject;
  let most = 0;
  let seen: { readonly status: string; readonly detail: string; readonly sandboxes?: SandboxCount } | undefined;
  const label = `environment.acceptance-${process.pid}`;
  const own = async () => docker!.listContainers({ all: true, filters: { label: [`${RUN}=${label}`] } });

  /** An attempt is known in later turns by what it has said. */
  function answer(prompt: string, sample: number): string {
    const { name, command } = SOLUTIONS.find(({ instruction }) => prompt.includes(instruction))!;
    const isFirst = !prompt.includes("<tool_call>");
    if (!isFirst) return prompt.includes("is not closed") && !prompt.includes("exit_code") ? call(command) : "Done.";
    switch (planOf(name, sample)) {
      case "solves":
        return `I run it.\n${call(command)}`;
      case "fails":
        return call("echo nothing > out.txt; exit 3");
      case "blunders":
        return '<tool_call>\n{"name": "bash"';
      case "breaks":
        return call("kill -9 -1; kill -9 1; sleep 30");
      default:
        return "It is done already.";
    }
  }

  /** What `status` says of the run while containers are at work for it. */
  async function working() {
    // Not in this process' own thread: the policy answers from it.
    const { out } = await project.start("status", "--json").ended;
    const { resources } = JSON.parse(out) as {
      resources: readonly (NonNullable<typeof seen> & { readonly address: string })[];
    };
    const run = resources.find(({ address }) => address === "run.agent");
    if (!run?.sandboxes?.inUse) throw new Error(`not at work: ${JSON.stringify(run)}`);
    return run;
  }

  beforeAll(async () => {
    const { tokenizer, ...renderer } = await loadRenderer(MODEL).then((loaded) => ({
      tokenizer: loaded.tokenizer,
      end: loaded.stopTokens()[0] as number,
    }));
    policy = await startPolicyServer({
      answer: (prompt, { sample }): Answer => ({ text: answer(prompt, sample), endToken: renderer.end }),
      codec: {
        encode: (text) => tokenizer.encode({ text, marks: [] }),
        decode: (tokens) => tokenizer.decode(tokens),
      },
    });
    project = new TestProject({
      "rlcli.yaml": `rlcli: 1
project: test
server: { backend: external, url: "${policy.url}", model: ${MODEL} }
environments:
  ${label.slice("environment.".length)}: { type: harbor, tasks: tasks, command_timeout: 10s, sandbox: { concurrency: ${SIZE.concurrency}, memory: 64MiB } }
runs:
  agent:
    type: rl
    environment: ${label.slice("environment.".length)}
    loss: importance_sampling
    steps: ${SIZE.steps}
    groups_per_batch: ${TASKS.length}
    group_size: ${SIZE.group}
    max_tokens: 200
    learning_rate: 1e-3
`,
    });
    project.env.TINKER_API_KEY = "tml-test";
    cpSync(join(EXAMPLE, "tasks"), join(project.folder, "tasks"), { recursive: true });
    const run = project.start("apply", "--auto-approve");
    const watch = setInterval(async () => {
      most = Math.max(most, (await own()).length);
    }, 100);
    try {
      seen = await vi.waitFor(working, { timeout: 300_000, interval: 300 });
      await run.ended;
    } finally {
      clearInterval(watch);
    }
    const { code, err } = await run.ended;
    if (code !== 0) process.stderr.write(readFileSync(join(project.runFolder("agent"), "log.txt"), "utf8"));
    expect([code, err]).toEqual([0, expect.stringMatching(/run\.agent: done/)]);
  }, 600_000);
  afterAll(async () => {
    await project.close();
    await policy.stop();
  });

  const steps = Array.from({ length: SIZE.steps }, (_, at) => at + 1);

  test("rewards are the tests' verdicts on what each attempt did, and one broken sandbox costs one rollout", () => {
    for (const step of steps) {
      const attempts = readRollouts(project.runFolder("agent"), step);
      expect(attempts).toHaveLength(TASKS.length * SIZE.group);
      for (const attempt of attempts) {
        const name = TASKS[attempt.task] as string;
        const plan = planOf(name, attempt.index);
        const what = { step, name, plan };
        if (plan === "breaks")
          expect({ ...what, lost: isLost(attempt) && attempt.fault.code }).toEqual({ ...what, lost: "RL7303" });
        else {
          const reward = plan === "solves" || plan === "blunders" ? 1 : 0;
          expect({ ...what, reward: isLost(attempt) ? attempt.fault : attempt.reward }).toEqual({ ...what, reward });
        }
      }
    }
    const metrics = readFileSync(join(project.runFolder("agent"), "metrics.jsonl"), "utf8")
      .trim()
      .split("\n");
    const values = metrics.map((line) => JSON.parse(line)).filter(({ step }) => step !== undefined);
    for (const { values: found } of values)
      expect(found).toMatchObject({ "groups/used": TASKS.length, "rollouts/lost": 1 });
  });

  test("containers were at work side by side, no more than were allowed, and none is left", async () => {
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(SIZE.concurrency);
    await expectNothingLeft(docker!, label);
  });

  test("how many there are is told while they work, and the most of a step with it", () => {
    expect(seen).toMatchObject({ status: "working", sandboxes: { places: SIZE.concurrency } });
    expect(seen?.detail).toContain(`${seen?.sandboxes?.inUse}/${SIZE.concurrency} sandboxes`);
    const said = project
      .ok("logs", "agent")
      .split("\n")
      .filter((line) => line.includes(" sandboxes"));
    expect(said).toHaveLength(SIZE.steps);
    for (const line of said)
      expect(line).toMatch(new RegExp(` ([2-${SIZE.concurrency}])/${SIZE.concurrency} sandboxes$`));
  });

  test("rollouts are told turn by turn, and exported as trajectories that hold against the format", () => {
    const text = project.ok("rollouts", "agent", "--task", "sort-lines", "--limit", "8");
    const said = text.replaceAll(/ +/g, " ");
    expect(said).toContain("task 4 sort-lines, answer");
    expect(said).toMatch(
      /turn 1 \d+ tokens\n said I run it\.\n bash sort in\.txt >out\.txt\n output exit code 0\n turn 2/,
    );
    expect(said).toContain("output error: A <tool_call> is not closed by </tool_call>.");
    expect(said).toMatch(
      /answer \d+\.\d+ lost\n[\s\S]* bash kill -9 -1; kill -9 1; sleep 30\n fault [\s\S]*\(RL7303\)/,
    );
    expect(project.ok("rollouts", "agent", "--step", "1", "--export", "out", "--tokens")).toMatch(
      new RegExp(`: ${TASKS.length * SIZE.group} written to out, 1 of them lost`),
    );
    const trials = readdirSync(join(project.folder, "out"));
    expect(trials).toHaveLength(TASKS.length * SIZE.group);
    const json = (path: string) => JSON.parse(readFileSync(join(project.folder, "out", path), "utf8"));
    for (const trial of trials) {
      const result = json(`${trial}/result.json`);
      if (result.exception_info) {
        expect([trial, result.exception_info.exception_type]).toEqual([
          expect.stringMatching(/^sort-lines__/),
          "RL7303",
        ]);
        continue;
      }
      const document = json(`${trial}/agent/trajectory.json`);
      expect(faultsOf(document)).toEqual([]);
      expect(document.final_metrics.extra.reward).toBe(result.verifier_result.rewards.reward);
      const answers = document.steps.filter(({ source }: { source: string }) => source === "agent");
      for (const { metrics } of answers) expect(metrics.completion_token_ids).toHaveLength(metrics.completion_tokens);
    }
  });

  test("a task that nobody knows is told by its name", () => {
    const { code, err } = project.run(["rollouts", "agent", "--task", "sort-line"]);
    expect([code, err]).toEqual([1, expect.stringMatching(/RL9009[\s\S]*Did you mean `sort-lines`/)]);
  });
});
