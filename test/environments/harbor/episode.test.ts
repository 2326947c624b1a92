/** Attempts of a scripted policy at tasks: turns, malformed calls, limits, verdicts. On a real daemon. */
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { AgentOrder, EnvironmentOrder } from "../../../src/environment-order.ts";
import { type Environment, openEnvironment, type Response } from "../../../src/environments/environment.ts";
import { taskDigest } from "../../../src/environments/harbor/digest.ts";
import { cacheFolder, expectNothingLeft, findDocker, HARBOR_FIXTURES } from "../../support/docker.ts";

const docker = await findDocker();
const scratch = mkdtempSync(join(tmpdir(), "harbor-episode-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));

const AGENT: AgentOrder = {
  tool_format: "auto",
  max_turns: 4,
  command_timeout_ms: 30_000,
  max_trajectory_tokens: 4096,
  output_bytes: 400,
  on_limit: "penalty",
  limit_reward: -0.1,
  malformed_retries: 1,
};

const orderOf = (folder: string, agent: Partial<AgentOrder>): EnvironmentOrder => ({
  address: "environment.box",
  folder: scratch,
  tasks: { address: "environment.box", digest: "sha256:00", path: folder },
  question: "instruction",
  few_shot: [],
  tag: "difficulty",
  graders: [],
  max_turns: 4,
  retries: 0,
  harbor: {
    project: "test",
    label: "episodes",
    tasks: [{ name: "one", folder, digest: taskDigest(folder) }],
    agent: { ...AGENT, ...agent },
    sandbox: {
      concurrency: 2,
      memory_bytes: 256 << 20,
      pids: 256,
      network: "task",
      security: "compat",
      lifetime_ms: 600_000,
      keep_failed: false,
    },
  },
});

const fixture = (name: string) => join(HARBOR_FIXTURES, name);
const call = (command: string) =>
  `<tool_call>\n${JSON.stringify({ name: "bash", arguments: { command } })}\n</tool_call>`;
const WRITE = call("echo 'Hello, world!' > /app/hello.txt");

describe.skipIf(!docker)("episodes on a Docker daemon (skipped where none runs)", () => {
  afterAll(() => expectNothingLeft(docker!, "episodes"));

  /** All responses to answers in turn; `cut` marks one that ended at the limit of tokens. */
  async function play(
    folder: string,
    agent: Partial<AgentOrder>,
    answers: readonly (string | { readonly cut: string })[],
    env = {},
  ) {
    const environment: Environment = await openEnvironment(orderOf(folder, agent), {
      folder: scratch,
      cacheFolder,
      env,
    });
    const episode = await environment.open(0, new AbortController().signal);
    const responses: Response[] = [];
    try {
      for (const [at, answer] of answers.entries()) {
        const text = typeof answer === "string" ? answer : answer.cut;
        const isLast = at + 1 >= episode.maxTurns;
        responses.push(await episode.respond({ text, isWhole: typeof answer === "string", isLast }));
      }
      return { responses, episode, environment };
    } finally {
      await episode.close();
      await environment.close();
    }
  }
  const grade = (response: Response | undefined) =>
    response && "reward" in response ? { reward: response.reward, note: response.note } : response;
  const said = (response: Response | undefined) =>
    response && "messages" in response
      ? response.messages.map(({ role, content }) => [role, JSON.parse(content)])
      : response;

  test("a command, its result, another, and the verdict once no call is made", async () => {
    const { responses, episode, environment } = await play(fixture("hello-file"), {}, [
      call("pwd; echo oops >&2; exit 3"),
      WRITE,
      "Done.",
    ]);
    expect(episode.messages.map(({ role }) => role)).toEqual(["system", "user"]);
    expect(episode.messages[1]?.content).not.toMatch(/canary/i);
    expect(environment.tagOf(0)).toBe("easy");
    expect(said(responses[0])).toEqual([["tool", { exit_code: 3, stdout: "/app\n", stderr: "oops\n" }]]);
    expect(responses[2]).toEqual({
      reward: 1,
      note: "completed",
      metrics: { "verifier/reward": 1, turns: 3, tool_calls: 2, parse_errors: 0, steps: 1, "stop/completed": 1 },
    });
  });

  test("two calls in one answer run in order; a block of bash is answered as the user", async () => {
    const { responses } = await play(fixture("hello-file"), {}, [
      call("echo a > /tmp/x") + call("cat /tmp/x"),
      "```bash\ncat /tmp/x\n```",
    ]);
    expect(said(responses[0])).toMatchObject([
      ["tool", { stdout: "" }],
      ["tool", { stdout: "a\n" }],
    ]);
    expect(said(responses[1])).toEqual([["user", { exit_code: 0, stdout: "a\n", stderr: "" }]]);
  });

  test("malformed calls are answered; one too many ends the attempt at its price, without a container", async () => {
    const bad = '<tool_call>\n{"name": "bash", "arguments": "ls"}\n</tool_call>';
    const { responses } = await play(fixture("hello-file"), {}, [bad, bad]);
    expect(said(responses[0])).toEqual([
      ["tool", { error: 'The "arguments" of the call of bash must be a JSON object.' }],
    ]);
    expect(grade(responses[1])).toEqual({ reward: -0.1, note: "parse_error" });
    const unknown = await play(fixture("hello-file"), {}, [
      '<tool_call>{"name":"ls","arguments":{}}</tool_call>',
      WRITE,
      "Done.",
    ]);
    expect(said(unknown.responses[0])).toEqual([["tool", { error: "There is no tool ls. There is bash." }]]);
    expect(grade(unknown.responses[2])).toEqual({ reward: 1, note: "completed" });
  });

  test("the last turn's calls still run, then the tests judge", async () => {
    expect(grade((await play(fixture("hello-file"), { max_turns: 1 }, [WRITE])).responses[0])).toEqual({
      reward: 1,
      note: "max_turns",
    });
  });

  test("an answer that is cut has a price, or the tests' verdict", async () => {
    expect(grade((await play(fixture("hello-file"), {}, [WRITE, { cut: "I th" }])).responses[1])).toEqual({
      reward: -0.1,
      note: "max_tokens",
    });
    const graded = await play(fixture("hello-file"), { on_limit: "grade" }, [WRITE, { cut: "I th" }]);
    expect(grade(graded.responses[1])).toEqual({ reward: 1, note: "max_tokens" });
  });

  test("a command that takes too long is killed and told; an agent out of time is judged", async () => {
    const slow = await play(fixture("hello-file"), { command_timeout_ms: 3000 }, [
      call("echo a; setsid sleep 300"),
      WRITE,
      "Done.",
    ]);
    expect(said(slow.responses[0])).toEqual([["tool", { exit_code: 124, timed_out: true, stdout: "a\n", stderr: "" }]]);
    expect(grade(slow.responses[2])).toEqual({ reward: 1, note: "completed" });
    const late = await play(fixture("hello-file"), { agent_timeout_ms: 5000, command_timeout_ms: 60_000 }, [
      WRITE + call("sleep 300"),
    ]);
    expect(grade(late.responses[0])).toEqual({ reward: 1, note: "agent_timeout" });
  });

  test("a command that is killed for memory is told so, and counted", async () => {
    const hog = "x=$(head -c 400000000 /dev/zero | tr '\\0' x)";
    const { responses } = await play(fixture("hello-file"), { command_timeout_ms: 100_000 }, [
      call(hog),
      WRITE,
      "Done.",
    ]);
    expect(said(responses[0])).toMatchObject([["tool", { exit_code: 137, out_of_memory: true }]]);
    expect(said(responses[1])).toEqual([["tool", { exit_code: 0, stdout: "", stderr: "" }]]);
    expect(responses[2]).toMatchObject({ reward: 1, metrics: { memory_kills: 1 } });
  });

  test("much output is cut, and what the host's variables hold is masked", async () => {
    const folder = join(scratch, "masked");
    cpSync(fixture("env-and-workdir"), folder, { recursive: true });
    const { responses } = await play(folder, {}, [call('echo "$GREETING"; seq 1 10000')], {
      RLCLI_TEST_GREETING: "top-secret-greeting",
    });
    const [[, result]] = said(responses[0]) as [[string, { stdout: string }]];
    expect(result.stdout).toMatch(/^\*\*\*\n1\n2[\s\S]*\[… \d+ bytes left out …\][\s\S]*10000\n$/);
  });

  test("steps follow one another, each with a conversation of its own, and their mean counts", async () => {
    const solution = (step: string) =>
      call(readFileSync(join(fixture("multi-step"), `steps/${step}/solution/solve.sh`), "utf8"));
    const { responses, episode } = await play(fixture("multi-step"), {}, [
      solution("collect"),
      "Done.",
      solution("summarize"),
      "Done.",
    ]);
    expect(episode.maxTurns).toBe(8);
    expect(responses[1]).toMatchObject({ isFresh: true, messages: [{ role: "system" }, { role: "user" }] });
    expect(grade(responses[3])).toEqual({ reward: 0.75, note: "completed" });
    expect(grade((await play(fixture("multi-step"), {}, ["Done."])).responses[0])).toEqual({
      reward: 0,
      note: "completed",
    });
  });

  test.each<[string, string, RegExp]>([
    ["no-reward-file", "", /RL7305/],
    ["hanging-tests", "", /RL7305.*longer than 3 s/],
    ["broken-dockerfile", "", /RL7302/],
    ["hello-file", call("kill -9 -1"), /RL7303/],
  ])("%s is lost, not graded", async (task, first, pattern) => {
    const answers = first === "" ? ["Done."] : [first, call("pwd"), "Done."];
    await expect(play(fixture(task), {}, answers)).rejects.toThrow(pattern);
  });

  test("a server that the agent started is alive when the tests run", async () => {
    const folder = join(scratch, "server");
    cpSync(fixture("hello-file"), folder, { recursive: true });
    writeFileSync(
      join(folder, "tests/test.sh"),
      '#!/bin/bash\nfor i in $(seq 50); do [ "$(nc 127.0.0.1 8080)" = alive ] && { echo 1 > /logs/verifier/reward.txt; exit; }; sleep 0.1; done\necho 0 > /logs/verifier/reward.txt\n',
    );
    const { responses } = await play(folder, {}, [call("nc -l -p 8080 -e echo alive &"), "Done."]);
    expect(grade(responses[1])).toEqual({ reward: 1, note: "completed" });
  });

  test("tasks that changed since the plan, variables that are missing and a daemon that is not there are told before anything", async () => {
    const order = orderOf(fixture("hello-file"), {});
    const surroundings = { folder: scratch, cacheFolder, env: {} };
    const harbor = order.harbor!;
    const other = { ...order, harbor: { ...harbor, tasks: [{ ...harbor.tasks[0]!, digest: "sha256:00" as const }] } };
    await expect(openEnvironment(other, surroundings)).rejects.toThrow(/RL7208/);
    const gone = {
      ...order,
      harbor: { ...harbor, sandbox: { ...harbor.sandbox, host: "unix:///nowhere/docker.sock" } },
    };
    await expect(openEnvironment(gone, surroundings)).rejects.toThrow(/RL7301.*does not answer/);
  });
});
