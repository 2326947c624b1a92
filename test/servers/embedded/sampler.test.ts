import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { chooseToken, topLogprobs } from "../../../src/servers/embedded/choice.ts";
import { Decoder } from "../../../src/servers/embedded/decoder.ts";
import { NO_WISHES } from "../../../src/servers/embedded/prompt.ts";
import { type SampleRequest, type SampleResult, Sampler } from "../../../src/servers/embedded/sampler.ts";
import { smallModel, tokensOf } from "./support.ts";

const decoder = new Decoder(smallModel());
const other = new Decoder(smallModel({}, 2));

function requestOf(changes: Partial<SampleRequest> = {}): SampleRequest {
  return {
    prompt: tokensOf(6, 1),
    samples: 1,
    maxTokens: 12,
    policy: { temperature: 1, topK: -1, topP: 1 },
    seed: 11,
    stopTokens: [],
    stopStrings: [],
    wishes: NO_WISHES,
    topkSampled: 0,
    seedPosition: 0,
    ...changes,
  };
}

async function runAll(requests: readonly [Decoder, SampleRequest][]): Promise<SampleResult[]> {
  const sampler = new Sampler();
  const decode = (tokens: readonly number[]) => tokens.map((token) => String.fromCharCode(97 + token)).join("");
  const results = Promise.all(requests.map(([model, request]) => sampler.sample(model, request, decode)));
  while (sampler.hasWork) sampler.turn();
  return results;
}

const run = async (request: SampleRequest, model = decoder) => (await runAll([[model, request]]))[0]!;

describe("a sample depends on weights, prompt and seed alone", () => {
  const requestArbitrary = fc
    .record({
      length: fc.integer({ min: 1, max: 40 }),
      promptSeed: fc.integer({ min: 0, max: 1000 }),
      samples: fc.integer({ min: 1, max: 5 }),
      maxTokens: fc.integer({ min: 1, max: 20 }),
      seed: fc.integer({ min: 0, max: 2 ** 40 }),
      policy: fc.record({
        temperature: fc.constantFrom(0, 0.3, 1, 2),
        topK: fc.constantFrom(-1, 3),
        topP: fc.constantFrom(1, 0.7),
      }),
      stopTokens: fc.constantFrom([], [3, 4, 5]),
      wishes: fc.record({
        logprobs: fc.boolean(),
        topk: fc.constantFrom(0, 2),
        from: fc.constant(1),
        targets: fc.constant(undefined),
        draws: fc.constantFrom(0, 2),
      }),
    })
    .map(({ length, promptSeed, ...rest }) => requestOf({ prompt: tokensOf(length, promptSeed), ...rest }));

  test("bit for bit: alone, among others, and in another order", async () => {
    const batch = fc.array(fc.tuple(fc.constantFrom(decoder, other), requestArbitrary), {
      minLength: 2,
      maxLength: 25,
    });
    await fc.assert(
      fc.asyncProperty(batch, async (requests) => {
        const together = await runAll(requests);
        const reversed = (await runAll([...requests].reverse())).reverse();
        expect(reversed).toEqual(together);
        for (const i of [0, requests.length - 1])
          expect(await run(requests[i]![1], requests[i]![0])).toEqual(together[i]);
      }),
      { numRuns: process.env.RLCLI_TEST_ALL ? 100 : 10, seed: 5 },
    );
  });

  test("also where more requests wait than can be written at a time", async () => {
    const requests = Array.from({ length: 200 }, (_, i): [Decoder, SampleRequest] => [
      i % 3 === 0 ? other : decoder,
      requestOf({ prompt: tokensOf(1 + (i % 9), i), seed: i, maxTokens: 1 + (i % 5), samples: 1 + (i % 2) }),
    ]);
    const together = await runAll(requests);
    for (const i of [0, 1, 77, 199]) expect(together[i]).toEqual(await run(requests[i]![1], requests[i]![0]));
  });

  test("sample i of a request is the sample of seed + i", async () => {
    const { sequences } = await run(requestOf({ samples: 3, seed: 5 }));
    for (const i of [0, 1, 2]) expect((await run(requestOf({ seed: 5 + i }))).sequences[0]).toEqual(sequences[i]);
    expect(new Set(sequences.map(({ tokens }) => tokens.join())).size).toBe(3);
  });

  test("more samples than sequences at a time all come, in order", async () => {
    const { sequences } = await run(requestOf({ samples: 150, maxTokens: 3 }));
    expect(sequences.length).toBe(150);
    expect((await run(requestOf({ seed: 11 + 149, maxTokens: 3 }))).sequences[0]).toEqual(sequences[149]);
  });
});

describe("a sequence", () => {
  test("carries log-probabilities of the raw logits, whatever the temperature", async () => {
    const [hot, cold] = [
      await run(requestOf({ policy: { temperature: 2, topK: 5, topP: 0.9 } })),
      await run(requestOf()),
    ];
    for (const { sequences } of [hot, cold]) {
      const { tokens, logprobs } = sequences[0]!;
      const prompt = [...requestOf().prompt, ...tokens];
      const scored = await run(requestOf({ prompt, maxTokens: 1, wishes: { ...NO_WISHES, logprobs: true } }));
      logprobs.forEach((logprob, i) => {
        expect(logprob).toBeCloseTo(scored.prompt.logprobs![requestOf().prompt.length + i]!, 5);
      });
    }
  });

  test("without randomness takes the likeliest tokens", async () => {
    const greedy = await run(requestOf({ policy: { temperature: 0, topK: -1, topP: 1 } }));
    const onlyTop = await run(requestOf({ policy: { temperature: 3, topK: 1, topP: 1 } }));
    const tinyShare = await run(requestOf({ policy: { temperature: 3, topK: -1, topP: 1e-9 } }));
    expect(onlyTop).toEqual(greedy);
    expect(tinyShare).toEqual(greedy);
  });

  test("ends at a stop token, which it keeps, also on the last allowed token", async () => {
    const free = (await run(requestOf())).sequences[0]!;
    expect(free.stopReason).toBe("length");
    expect(free.tokens.length).toBe(12);
    const at = free.tokens.findIndex((token, i) => i > 1 && !free.tokens.slice(0, i).includes(token));
    const stopped = (await run(requestOf({ stopTokens: [free.tokens[at]!] }))).sequences[0]!;
    expect(stopped).toEqual({
      tokens: free.tokens.slice(0, at + 1),
      logprobs: free.logprobs.slice(0, at + 1),
      topk: null,
      stopReason: "stop",
    });
    const exact = await run(requestOf({ stopTokens: [free.tokens[at]!], maxTokens: at + 1 }));
    expect(exact.sequences[0]!.stopReason).toBe("stop");
  });

  test("ends at the token that completes a stop string", async () => {
    const free = (await run(requestOf())).sequences[0]!;
    const text = free.tokens.map((token) => String.fromCharCode(97 + token)).join("");
    const stop = text.slice(3, 6);
    const { sequences } = await run(requestOf({ stopStrings: ["never", stop] }));
    expect(sequences[0]!.tokens).toEqual(free.tokens.slice(0, text.indexOf(stop) + stop.length));
    expect(sequences[0]!.stopReason).toBe("stop");
  });

  test("prompt log-probabilities: one a token, the first undefined, top k sorted", async () => {
    const request = requestOf({ wishes: { ...NO_WISHES, topk: 3 }, prompt: tokensOf(30, 2) });
    const { logprobs, topk } = (await run(request)).prompt;
    expect(logprobs!.length).toBe(30);
    expect(logprobs![0]).toBeNull();
    expect(topk![0]).toBeNull();
    for (const [i, row] of topk!.entries()) {
      if (row === null) continue;
      expect(row.length).toBe(3);
      expect(row[0]![1]).toBeGreaterThanOrEqual(row[2]![1]);
      expect(logprobs![i]!).toBeLessThanOrEqual(row[0]![1] + 1e-9);
    }
  });

  test("only the last of them, where so asked", async () => {
    const prompt = tokensOf(9, 3);
    const all = (await run(requestOf({ prompt, wishes: { ...NO_WISHES, logprobs: true, topk: 2 } }))).prompt;
    const last = (await run(requestOf({ prompt, wishes: { ...NO_WISHES, logprobs: true, topk: 2, from: 7 } }))).prompt;
    expect(last.logprobs).toEqual([...new Array(7).fill(null), ...all.logprobs!.slice(7)]);
    expect(last.topk).toEqual([...new Array(7).fill(null), ...all.topk!.slice(7)]);
  });

  test("given tokens are scored at each position, and tokens are drawn there", async () => {
    const prompt = tokensOf(9, 4);
    const values = Int32Array.from(prompt.slice(1).flatMap((token, i) => [i % 3 === 0 ? -1 : token, 5]));
    const wishes = { ...NO_WISHES, logprobs: true, topk: 40, targets: { width: 2, values }, draws: 3 };
    const { logprobs, topk, targets, draws } = (await run(requestOf({ prompt, wishes }))).prompt;
    for (let i = 1; i < prompt.length; i++) {
      const scoreOf = (token: number) => topk![i]!.find(([other]) => other === token)![1];
      expect(targets!.values[(i - 1) * 2]).toBeCloseTo((i - 1) % 3 === 0 ? 0 : logprobs![i]!, 5);
      expect(targets!.values[(i - 1) * 2 + 1]).toBeCloseTo(scoreOf(5), 5);
      for (let j = (i - 1) * 3; j < i * 3; j++)
        expect(draws!.logprobs.values[j]).toBeCloseTo(scoreOf(draws!.tokens.values[j]!), 5);
    }
    expect(new Set(draws!.tokens.values).size).toBeGreaterThan(5);
    expect(targets!.values.length).toBe(16);
    expect(draws!.tokens).toMatchObject({ width: 3 });
  });

  test("likeliest tokens beside each sampled one", async () => {
    const { sequences } = await run(requestOf({ topkSampled: 2, policy: { temperature: 0, topK: -1, topP: 1 } }));
    const { tokens, logprobs, topk } = sequences[0]!;
    expect(topk!.map((row) => row[0]![0])).toEqual(tokens);
    topk!.forEach((row, i) => {
      expect(row[0]![1]).toBeCloseTo(logprobs[i]!, 5);
      expect(row[1]![1]).toBeLessThanOrEqual(row[0]![1]);
    });
  });
});

describe("a cancelled request", () => {
  test("fails, holds nothing up, and leaves the others as they would be without it", async () => {
    const sampler = new Sampler();
    const kept = sampler.sample(decoder, requestOf(), undefined, "kept");
    const dropped = [
      sampler.sample(decoder, requestOf({ samples: 3, maxTokens: 58 }), undefined, "dropped"),
      sampler.sample(decoder, requestOf({ prompt: tokensOf(60, 1), maxTokens: 1 }), undefined, "waiting"),
    ];
    const ends = dropped.map((sample) => sample.catch((error: Error) => error.message));
    sampler.turn();
    for (const ticket of ["dropped", "waiting", "unknown"]) sampler.cancel(ticket);
    expect(await Promise.all(ends)).toEqual(["The request was cancelled.", "The request was cancelled."]);
    let turns = 0;
    while (sampler.hasWork && turns < 20) {
      sampler.turn();
      turns++;
    }
    expect(sampler.hasWork).toBe(false);
    expect(await kept).toEqual(await run(requestOf()));
    sampler.cancel("kept");
  });
});

describe("the choice of a token", () => {
  const logits = Float32Array.from([1, 3, 2, 3, -1]);
  const at = (uniform: number, topK = -1, topP = 1) => chooseToken(logits, { temperature: 1, topK, topP }, uniform);

  test("follows the probabilities", () => {
    const counts = new Array<number>(5).fill(0);
    for (let i = 0; i < 10_000; i++) counts[at((i + 0.5) / 10_000)]! += 1;
    const total = logits.reduce((sum, logit) => sum + Math.exp(logit), 0);
    counts.forEach((count, token) => {
      expect(Math.abs(count / 10_000 - Math.exp(logits[token]!) / total)).toBeLessThan(1e-3);
    });
  });

  test("top k and top p keep the likeliest, equal ones by id", () => {
    const kept = (topK: number, topP: number) =>
      new Set(Array.from({ length: 1000 }, (_, i) => at(i / 1000, topK, topP)));
    expect(kept(1, 1)).toEqual(new Set([1]));
    expect(kept(2, 1)).toEqual(new Set([1, 3]));
    expect(kept(3, 1)).toEqual(new Set([1, 3, 2]));
    // Shares of the rest after temperature: 1 and 3 hold 0.77 of the whole.
    expect(kept(-1, 0.7)).toEqual(new Set([1, 3]));
    expect(kept(-1, 0.8)).toEqual(new Set([1, 3, 2]));
    // Within the top 2, each holds half.
    expect(kept(2, 0.5)).toEqual(new Set([1]));
    expect(kept(-1, 1e-9)).toEqual(new Set([1]));
  });

  test("lists the likeliest with normalised log-probabilities", () => {
    const all = topLogprobs(logits, 5);
    expect(all.map(([token]) => token)).toEqual([1, 3, 2, 0, 4]);
    expect(all.reduce((sum, [, logprob]) => sum + Math.exp(logprob), 0)).toBeCloseTo(1, 9);
  });
});
