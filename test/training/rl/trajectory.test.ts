// Rollouts as ATIF documents: who said what, which tools were called and what they gave, one document for each conversation.
import { expect, test } from "vitest";
import { fromLines, type Rollout, type RolloutTurn, toLines } from "../../../src/training/rl/rollout.ts";
import { type TrajectoryContext, trajectoriesOf } from "../../../src/training/rl/trajectory.ts";
import { faultsOf } from "../../support/atif.ts";

const CONTEXT: TrajectoryContext = {
  sessionId: "run.agent/1/0.0",
  agent: { name: "rlcli", version: "0", model_name: "tiny" },
  toolFormat: "auto",
  hasTokens: false,
  extra: { task: 0 },
  decode: (tokens) => `<${Array.from(tokens).join(" ")}>`,
};
const call = (command: string) =>
  `<tool_call>\n${JSON.stringify({ name: "bash", arguments: { command } })}\n</tool_call>`;
const tool = (said: object) => ({ role: "tool", name: "bash", content: JSON.stringify(said) });
const ASKED = [
  { role: "system", content: "Be good." },
  { role: "user", content: "Do it." },
];

/** Turns that extend each other: every answer is two tokens, and each reply one. */
function turns(...all: readonly (Partial<RolloutTurn> & { readonly text: string })[]): readonly RolloutTurn[] {
  return all.map((turn, at) => ({
    prompt: Int32Array.from({ length: 3 + at * 3 }, (_, i) => i),
    tokens: Int32Array.from([3 + at * 3, 4 + at * 3]),
    logprobs: Float32Array.from([-0.5, -0.25]),
    stop: "stop",
    ...turn,
  }));
}
const rollout = (said: readonly RolloutTurn[], more: Partial<Rollout> = {}): Rollout => ({
  group: 0,
  index: 0,
  task: 0,
  turns: said,
  reward: 1,
  metrics: { "verifier/reward": 1 },
  note: "completed",
  weights: 0,
  ...more,
});

test("calls, their outputs, thinking and the verdict, as the format has them", () => {
  const played = rollout(
    turns(
      {
        text: `<think>\nLook first.\n</think>\n\nI look.\n${call("ls")}${call("pwd")}`,
        asked: ASKED,
        reply: [tool({ exit_code: 0 }), tool({ exit_code: 1 })],
      },
      {
        text: `${call("x")}<tool_call>\n{`,
        reply: [tool({ exit_code: 0 }), tool({ error: "A <tool_call> is not closed by </tool_call>." })],
      },
      { text: "Done.", stop: "length" },
    ),
  );
  const documents = trajectoriesOf(played, CONTEXT);
  expect(documents.flatMap(faultsOf)).toEqual([]);
  expect(documents).toMatchSnapshot();
});

test("with tokens: what the policy saw and said, and how likely it was", () => {
  const [document] = trajectoriesOf(rollout(turns({ text: "Done.", asked: ASKED })), { ...CONTEXT, hasTokens: true });
  expect(faultsOf(document)).toEqual([]);
  expect(document?.steps.at(-1)?.metrics).toEqual({
    prompt_tokens: 3,
    completion_tokens: 2,
    prompt_token_ids: [0, 1, 2],
    completion_token_ids: [3, 4],
    logprobs: [-0.5, -0.25],
  });
});

test("a conversation that begins anew is a document of its own, and the one before names it", () => {
  const played = rollout(turns({ text: "Done.", asked: ASKED }, { text: "Done too.", asked: ASKED }));
  const documents = trajectoriesOf(played, CONTEXT);
  expect(documents.flatMap(faultsOf)).toEqual([]);
  expect(documents.map(({ continued_trajectory_ref: next }) => next)).toEqual(["trajectory.cont-1.json", undefined]);
  expect(documents.map(({ trajectory_id: id }) => id)).toEqual(["run.agent/1/0.0/0", "run.agent/1/0.0/1"]);
  expect(documents.map(({ final_metrics: { extra } }) => extra?.reward)).toEqual([undefined, 1]);
});

test("without tools what is said back is the user's; examples in the prompt are copied context", () => {
  const { toolFormat: _, ...context } = CONTEXT;
  const asked = [...ASKED, { role: "assistant", content: "Like so." }, { role: "user", content: "And?" }];
  const played = rollout(turns({ text: "4", asked, reply: [{ role: "user", content: "No." }] }, { text: "5" }));
  const [document] = trajectoriesOf(played, context);
  expect(faultsOf(document)).toEqual([]);
  expect(document?.steps.map(({ source, message, is_copied_context: copied }) => [source, message, copied])).toEqual([
    ["system", "Be good.", undefined],
    ["user", "Do it.", undefined],
    ["agent", "Like so.", true],
    ["user", "And?", undefined],
    ["agent", "4", undefined],
    ["user", "No.", undefined],
    ["agent", "5", undefined],
  ]);
});

test("rollouts of older versions, which have no messages, show their prompts as the template wrote them", () => {
  const [document] = trajectoriesOf(rollout(turns({ text: "a" }, { text: "b" })), CONTEXT);
  expect(faultsOf(document)).toEqual([]);
  expect(document?.steps.map(({ message }) => message)).toEqual(["<0 1 2>", "a", "<5>", "b"]);
});

test("messages are written once for a group and are there again when it is read", () => {
  const said = { text: "a", asked: ASKED, reply: [{ role: "user", content: "more" }] };
  const group = [0, 1].map((index) => rollout(turns(said, { text: "b" }), { index }));
  const lines = toLines(group);
  expect(JSON.stringify(lines).split("Do it.").length).toBe(2);
  expect(fromLines(JSON.parse(JSON.stringify(lines)))).toEqual(group);
});

test("the check of documents tells good ones from bad ones", () => {
  const [good] = trajectoriesOf(rollout(turns({ text: call("ls"), asked: ASKED, reply: [tool({})] })), CONTEXT);
  const bad = (change: (document: any) => void) => {
    const copy = structuredClone(good) as any;
    change(copy);
    return faultsOf(copy);
  };
  expect(faultsOf(good)).toEqual([]);
  expect(bad((d) => (d.other = 1))).toHaveLength(1);
  expect(bad((d) => (d.steps[1].step_id = 7))).toEqual([expect.stringContaining("step_id")]);
  expect(bad((d) => (d.steps[1].tool_calls = []))).not.toEqual([]);
  expect(bad((d) => (d.steps[2].observation.results[0].source_call_id = "call_9"))).toEqual([
    expect.stringContaining("call_9"),
  ]);
  expect(bad((d) => (d.steps[2].llm_call_count = 0))).not.toEqual([]);
  expect(bad((d) => (d.steps = []))).not.toEqual([]);
});
