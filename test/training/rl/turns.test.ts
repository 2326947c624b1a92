// Episodes that begin conversations anew (steps of a task) and those that grow too long.
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { diagnostic, RlcliError } from "../../../src/diagnostic.ts";
import type { EvalOrder } from "../../../src/environment-order.ts";
import type { Environment, Episode, Response } from "../../../src/environments/environment.ts";
import { Limit } from "../../../src/environments/limit.ts";
import type { SampledSequence } from "../../../src/tinker/data.ts";
import type { SampleRequest, Sampler } from "../../../src/tinker/sampler.ts";
import { loadRenderer } from "../../../src/tokens/load.ts";
import { playEval } from "../../../src/training/rl/evals.ts";
import { type Player, playGroup } from "../../../src/training/rl/play.ts";
import { fromLines, isLost, type Rollout, toLines } from "../../../src/training/rl/rollout.ts";
import { segmentsOf } from "../../../src/training/rl/segments.ts";

const renderer = await loadRenderer(fileURLToPath(new URL("../../fixtures/tiny-qwen3", import.meta.url)));
const [END] = renderer.stopTokens() as [number];
const question = (content: string) => [{ role: "user", content }];

const TOKENS = Int32Array.from([...renderer.tokenizer.encode({ text: "ok", marks: [] }), END]);
const OK: SampledSequence = {
  tokens: TOKENS,
  logprobs: new Float32Array(TOKENS.length).fill(-1),
  stopReason: "stop",
};

/** A player whose every answer is what `sample` says. */
function playerOf(environment: Environment, answer: (prompt: string) => Promise<SampledSequence>): Player {
  const sample = async ({ prompt, count = 1 }: SampleRequest) => {
    const sequence = await answer(renderer.tokenizer.decode(prompt as Int32Array));
    return { result: async () => ({ sequences: Array(count).fill(sequence) }) };
  };
  return {
    environment,
    renderer,
    sampler: { sample } as unknown as Sampler,
    sampling: { temperature: 1, top_p: 1, max_tokens: 8, stop: [] },
    templateKwargs: {},
    weights: 0,
    seed: 1,
    limit: new Limit(8),
    firstSeq: 0,
    signal: new AbortController().signal,
  };
}

/** Plays one attempt whose every answer is `ok`, and gives what was asked as text. */
async function play(responses: readonly Response[], more: Partial<Episode> = {}) {
  const prompts: string[] = [];
  let at = 0;
  let closed = 0;
  const episode: Episode = {
    messages: question("one"),
    maxTurns: responses.length,
    respond: async () => responses[at++] as Response,
    close: async () => {
      closed += 1;
    },
    ...more,
  };
  const environment: Environment = {
    count: 1,
    tagOf: () => undefined,
    open: async () => episode,
    close: async () => {},
  };
  const player = playerOf(environment, async (prompt) => {
    prompts.push(prompt);
    return OK;
  });
  const [attempt] = await playGroup(player, { step: 1, group: 0, task: 0, count: 1 });
  expect(closed).toBe(1);
  return { attempt: attempt!, prompts };
}

const GRADE = { reward: 0.5, metrics: {} };

test("a fresh conversation shows nothing of the one before, and is trained on apart from it", async () => {
  const more = { messages: question("more") };
  const { attempt, prompts } = await play([more, { messages: question("two"), isFresh: true }, more, GRADE]);
  expect(prompts.map((prompt) => /one|two/.exec(prompt)?.[0])).toEqual(["one", "one", "two", "two"]);
  expect(prompts[2]).not.toContain("more");
  expect((attempt as Rollout).reward).toBe(0.5);
  expect(segmentsOf((attempt as Rollout).turns).length).toBe(2);
});

test("a conversation that would grow too long is graded as the episode says, without another answer", async () => {
  const long = { messages: question("long ".repeat(50)) };
  const tooLong = async () => ({ reward: -0.1, metrics: { "stop/context_overflow": 1 } });
  const { attempt, prompts } = await play([long, GRADE], { maxTokens: 60, tooLong });
  expect(prompts.length).toBe(1);
  expect(attempt).toMatchObject({ reward: -0.1, metrics: { "stop/context_overflow": 1 } });
  expect((attempt as Rollout).turns.length).toBe(1);
});

test("an attempt that is lost keeps what was answered until then, with the answer that could not be judged", async () => {
  let at = 0;
  const respond = async () => {
    at += 1;
    if (at === 3) throw new RlcliError(diagnostic("RL7303", "The sandbox is gone."));
    return { messages: question("more") };
  };
  const { attempt } = await play([GRADE, GRADE, GRADE, GRADE], { respond });
  expect(isLost(attempt) && attempt.fault.code).toBe("RL7303");
  expect(attempt.turns?.map(({ text, reply }) => [text, reply?.[0]?.content])).toEqual([
    ["ok", "more"],
    ["ok", "more"],
    ["ok", undefined],
  ]);
  expect(fromLines(JSON.parse(JSON.stringify(toLines([attempt]))))).toEqual([attempt]);
});

test("attempts of an eval have the names of their tasks, where tasks have names", async () => {
  const open = async (): Promise<Episode> => ({
    messages: question("one"),
    maxTurns: 1,
    respond: async () => GRADE,
    close: async () => {},
  });
  const environment = { count: 2, tagOf: () => undefined, open, close: async () => {} };
  const order = { samples: 1 } as EvalOrder;
  const named = { ...environment, nameOf: (task: number) => ["first", "second"][task] };
  const namesOf = async (of: Environment) =>
    (
      await playEval(
        playerOf(of, async () => OK),
        order,
      )
    )
      .flat()
      .map(({ taskName }) => taskName);
  expect(await namesOf(named)).toEqual(["first", "second"]);
  expect(await namesOf(environment)).toEqual([undefined, undefined]);
});

test("a task that is too long from the start is lost, and nothing is sampled", async () => {
  const { attempt, prompts } = await play([GRADE], { maxTokens: 10, tooLong: async () => GRADE });
  expect(prompts).toEqual([]);
  expect(isLost(attempt) && attempt.fault).toMatchObject({
    code: "RL7104",
    message: expect.stringMatching(/max_trajectory_tokens/),
  });
});

test("an attempt that is over makes room for the others of its group, so that groups larger than the places all end", async () => {
  const places = new Limit(1);
  const open = async (): Promise<Episode> => {
    let release = () => {};
    return {
      messages: question("one"),
      maxTurns: 2,
      respond: async ({ isLast }) => {
        if (isLast) return GRADE;
        await new Promise<void>((taken) => {
          void places.run(() => {
            taken();
            return new Promise<void>((resolve) => {
              release = resolve;
            });
          });
        });
        return { messages: question("more") };
      },
      close: async () => release(),
    };
  };
  const environment = { count: 1, tagOf: () => undefined, open, close: async () => {} };
  const groups = [0, 1].map((group) =>
    playGroup(
      playerOf(environment, async () => OK),
      { step: 1, group, task: 0, count: 3 },
    ),
  );
  const attempts = (await Promise.all(groups)).flat();
  expect(attempts.map((attempt) => (isLost(attempt) ? attempt.fault : attempt.reward))).toEqual(Array(6).fill(0.5));
});

test("an attempt that cannot be opened is lost alone: the others play, and what was opened is closed", async () => {
  let opened = 0;
  let closed = 0;
  const open = async (): Promise<Episode> => {
    opened += 1;
    if (opened === 3) throw new RlcliError(diagnostic("RL7303", "No room."));
    const close = async () => {
      closed += 1;
    };
    return { messages: question("one"), maxTurns: 1, respond: async () => GRADE, close };
  };
  const environment = { count: 1, tagOf: () => undefined, open, close: async () => {} };
  const order = { step: 1, group: 0, task: 0, count: 4 };
  const attempts = await playGroup(
    playerOf(environment, async () => OK),
    order,
  );
  expect(attempts.map((attempt) => (isLost(attempt) ? attempt.fault.code : attempt.reward))).toEqual([
    0.5,
    0.5,
    "RL7303",
    0.5,
  ]);
  expect([opened, closed]).toEqual([4, 3]);
});
