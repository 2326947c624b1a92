// Episodes: what is asked, retried, lost and thrown; answers over several turns extend the tokens that were sampled.
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { diagnostic, RlcliError } from "../../../src/diagnostic.ts";
import { type Environment, openEnvironment } from "../../../src/environments/environment.ts";
import { Limit } from "../../../src/environments/limit.ts";
import type { SampledSequence } from "../../../src/tinker/data.ts";
import { TinkerError } from "../../../src/tinker/errors.ts";
import type { SampleRequest, Sampler } from "../../../src/tinker/sampler.ts";
import { loadRenderer } from "../../../src/tokens/load.ts";
import { type Player, playGroup } from "../../../src/training/rl/play.ts";
import { isLost, type Rollout } from "../../../src/training/rl/rollout.ts";
import { segmentsOf } from "../../../src/training/rl/segments.ts";
import { makeRlOrder } from "./order.ts";

const renderer = await loadRenderer(fileURLToPath(new URL("../../fixtures/tiny-qwen3", import.meta.url)));
const [END] = renderer.stopTokens() as [number];

type Asked = SampleRequest & { readonly seqId: number };
type Answer = (asked: Asked, call: number) => readonly string[] | Error;

/** A sampler that answers from a script, and remembers what it was asked. */
function scripted(answer: Answer) {
  const asked: Asked[] = [];
  const sequence = (text: string): SampledSequence => {
    const tokens = text === "" ? [] : [...renderer.tokenizer.encode({ text, marks: [] }), END];
    return {
      tokens: Int32Array.from(tokens),
      logprobs: Float32Array.from(tokens, () => -0.5),
      stopReason: "stop",
    };
  };
  const sample = async (request: SampleRequest, { seqId }: { seqId: number }) => {
    asked.push({ ...request, seqId });
    const said = answer(asked.at(-1) as Asked, asked.length);
    return {
      result: async () => {
        if (said instanceof Error) throw said;
        return { sequences: said.map(sequence) };
      },
    };
  };
  return { sampler: { sample } as unknown as Sampler, asked };
}

function playerOf(sampler: Sampler, environment: Environment): Player {
  return {
    environment,
    renderer,
    sampler,
    sampling: { temperature: 1, top_p: 1, max_tokens: 16, stop: [] },
    templateKwargs: {},
    weights: 0,
    seed: 1,
    limit: new Limit(4),
    firstSeq: 0,
    signal: new AbortController().signal,
  };
}

const surroundings = { folder: "/", env: {}, cacheFolder: "/nowhere" };

async function graded(changes: Parameters<typeof makeRlOrder>[0] = {}): Promise<Environment> {
  const environment = await openEnvironment(makeRlOrder(changes).order.rl!.environment, surroundings);
  onTestFinished(() => environment.close());
  return environment;
}

const ORDER = { step: 1, group: 2, task: 3, count: 3 };

test("a group is asked for in one request, with the template's prompt and the model's stops", async () => {
  const { sampler, asked } = scripted(() => ["abc", "123", "x"]);
  const attempts = (await playGroup(playerOf(sampler, await graded()), ORDER)) as Rollout[];
  expect(attempts.map(({ reward }) => reward)).toEqual([1, 0, 1]);
  expect(attempts.map(({ group, index, task }) => [group, index, task])).toEqual([
    [2, 0, 3],
    [2, 1, 3],
    [2, 2, 3],
  ]);
  expect(asked).toHaveLength(1);
  expect(asked[0]!.count).toBe(3);
  expect(asked[0]!.params.stop).toEqual(renderer.stopTokens());
  expect(renderer.tokenizer.decode(asked[0]!.prompt)).toContain("Say 3");
  // The end of the turn is among the tokens that are trained on, and not in the text that is graded.
  expect(attempts[0]!.turns[0]!.text).toBe("abc");
  expect(attempts[0]!.turns[0]!.tokens.at(-1)).toBe(END);
});

test("seeds and numbers differ by place, and are the same for the same place", async () => {
  const seen = new Map<string, string>();
  for (const [step, group] of [
    [1, 0],
    [1, 1],
    [2, 0],
    [1, 0],
  ] as const) {
    const { sampler, asked } = scripted(() => ["a", "b", "c"]);
    await playGroup(playerOf(sampler, await graded()), { ...ORDER, step, group });
    seen.set(`${asked[0]!.params.seed} ${asked[0]!.seqId}`, `${step} ${group}`);
  }
  expect(seen.size).toBe(3);
});

const failed = () => new TinkerError({ kind: "failed", endpoint: "POST /asample", reason: "the engine broke" });

test("a failed sample is tried again with another seed and number", async () => {
  const { sampler, asked } = scripted((_, call) => (call < 3 ? failed() : ["a", "b", "1"]));
  const attempts = (await playGroup(playerOf(sampler, await graded()), ORDER)) as Rollout[];
  expect(attempts.map(({ reward }) => reward)).toEqual([1, 1, 0]);
  expect(new Set(asked.map(({ seqId }) => seqId)).size).toBe(3);
  expect(new Set(asked.map(({ params }) => params.seed)).size).toBe(3);
});

test("a group whose samples keep failing is lost, not zero", async () => {
  const { sampler } = scripted(failed);
  const attempts = await playGroup(playerOf(sampler, await graded()), ORDER);
  expect(attempts.map(isLost)).toEqual([true, true, true]);
  expect(attempts[0]).toMatchObject({
    fault: { code: "RL8008", message: expect.stringContaining("the engine broke") },
  });
});

test("an empty answer is a fault", async () => {
  const { sampler, asked } = scripted((_, call) => (call === 1 ? ["", "b", "c"] : ["a", "b", "c"]));
  const attempts = await playGroup(playerOf(sampler, await graded()), ORDER);
  expect(asked).toHaveLength(2);
  expect(attempts.some(isLost)).toBe(false);
  const always = scripted(() => ["", "b", "c"]);
  const lost = await playGroup(playerOf(always.sampler, await graded()), ORDER);
  expect(lost[0]).toMatchObject({ fault: { code: "RL8102" } });
});

test.each(["gone", "network", "busy"] as const)("a server that is %s concerns more than a group", async (kind) => {
  const { sampler } = scripted(() => new TinkerError({ kind, endpoint: "POST /asample", reason: "away" }));
  await expect(playGroup(playerOf(sampler, await graded()), ORDER)).rejects.toMatchObject({ kind });
});

/** Grades by a function, without files. */
function graderOf(respond: (text: string, call: number) => number | Error): Environment {
  let calls = 0;
  return {
    count: 9,
    tagOf: () => undefined,
    open: async () => ({
      messages: [{ role: "user", content: "q" }],
      maxTurns: 1,
      respond: async ({ text }) => {
        calls += 1;
        const said = respond(text, calls);
        if (said instanceof Error) throw said;
        return { reward: said, metrics: {} };
      },
      close: async () => {},
    }),
    close: async () => {},
  };
}

test("an attempt frees what it holds when it ends: a group larger than the places there are does not wait for itself", async () => {
  const place = new Limit(1);
  const open = async () => {
    let free: (() => void) | undefined;
    return {
      messages: [{ role: "user", content: "q" }],
      maxTurns: 1,
      respond: async () => {
        // A place that is held until the episode is closed, as a container's is.
        await new Promise<void>((taken) => {
          const hold = new Promise<void>((freed) => {
            free = freed;
          });
          void place.run(() => {
            taken();
            return hold;
          });
        });
        return { reward: 1, metrics: {} };
      },
      close: async () => free?.(),
    };
  };
  const environment = { count: 9, tagOf: () => undefined, open, close: async () => {} };
  const { sampler } = scripted(() => ["a", "b", "c"]);
  expect(await playGroup(playerOf(sampler, environment), ORDER)).toHaveLength(3);
});

test("a fault of the grader costs that attempt only", async () => {
  const { sampler } = scripted(() => ["a", "bad", "c"]);
  const fault = new RlcliError(diagnostic("RL7103", "The grader died."));
  const environment = graderOf((text) => (text === "bad" ? fault : 1));
  const attempts = await playGroup(playerOf(sampler, environment), ORDER);
  expect(attempts.map(isLost)).toEqual([false, true, false]);
});

test("a grader that cannot be started at all is thrown, and so is a bug", async () => {
  const { sampler } = scripted(() => ["a", "b", "c"]);
  const missing = new RlcliError(diagnostic("RL7102", "No such program."));
  await expect(
    playGroup(
      playerOf(
        sampler,
        graderOf(() => missing),
      ),
      ORDER,
    ),
  ).rejects.toBe(missing);
  const bug = new TypeError("x is undefined");
  await expect(
    playGroup(
      playerOf(
        sampler,
        graderOf(() => bug),
      ),
      ORDER,
    ),
  ).rejects.toBe(bug);
});

test("a flaky grader's answer is asked for again", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-grader-"));
  const path = join(folder, "flaky.js");
  writeFileSync(
    path,
    "let calls = 0; export const grade = () => { calls += 1; if (calls % 2 === 1) throw new Error('flaky'); return 1; };",
  );
  const grader = { type: "module", name: "m", weight: 1, options: { module: path }, timeoutMs: 60_000, concurrency: 1 };
  const { sampler } = scripted(() => ["a", "b", "c"]);
  const environment = await graded({ environment: { graders: [grader], retries: 2 } });
  const attempts = await playGroup(playerOf(sampler, environment), ORDER);
  expect(attempts.map((a) => !isLost(a) && a.reward)).toEqual([1, 1, 1]);
});

test("a module that answers back: one datum while each turn extends the last, tokens untouched", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-turns-"));
  const path = join(folder, "guess.js");
  writeFileSync(
    path,
    "export const grade = ({ completion, turn, prompt }) => completion.includes('7') ? { reward: 1 / (turn + 1), metrics: { seen: prompt.length } } : { messages: [{ role: 'user', content: 'higher' }] };",
  );
  const grader = { type: "module", name: "m", weight: 1, options: { module: path }, timeoutMs: 60_000, concurrency: 1 };
  const environment = await graded({ environment: { graders: [grader], max_turns: 3 } });
  const { sampler, asked } = scripted((_, call) => (call === 1 ? ["5", "7"] : call === 2 ? ["6"] : ["7"]));
  const attempts = (await playGroup(playerOf(sampler, environment), { ...ORDER, count: 2 })) as Rollout[];
  expect(attempts.map(({ reward, turns }) => [reward, turns.length])).toEqual([
    [1 / 3, 3],
    [1, 1],
  ]);
  expect(attempts[0]!.metrics.seen).toBe(5);
  const [first, second, third] = attempts[0]!.turns;
  const so = [...first!.prompt, ...first!.tokens];
  expect([...second!.prompt.subarray(0, so.length)]).toEqual(so);
  expect(renderer.tokenizer.decode(third!.prompt).match(/higher/g)).toHaveLength(2);
  expect(segmentsOf(attempts[0]!.turns)).toHaveLength(1);
  // What the template would have made of the conversation is what the policy saw.
  const messages = [
    { role: "user", content: "Say 3" },
    { role: "assistant", content: "5" },
    { role: "user", content: "higher" },
  ];
  expect(renderer.tokenizer.decode(second!.prompt)).toBe(
    renderer.tokenizer.decode(renderer.encode({ messages }, { add_generation_prompt: true })),
  );
  expect(asked.map(({ count }) => count)).toEqual([2, 1, 1]);
});

test("no grade by the last turn loses the attempt", async () => {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-turns-"));
  const path = join(folder, "never.js");
  writeFileSync(path, "export const grade = () => ({ messages: [{ role: 'user', content: 'more' }] });");
  const grader = { type: "module", name: "m", weight: 1, options: { module: path }, timeoutMs: 60_000, concurrency: 1 };
  const environment = await graded({ environment: { graders: [grader], max_turns: 2 } });
  const { sampler } = scripted(() => ["a"]);
  const [attempt] = await playGroup(playerOf(sampler, environment), { ...ORDER, count: 1 });
  expect(attempt).toMatchObject({ fault: { code: "RL7104" } });
});
