/** The scripted policy itself: a test that leans on it must be able to believe it. */
import { afterEach, describe, expect, test } from "vitest";
import { TinkerClient } from "../../src/tinker/index.ts";
import {
  BROKEN,
  BUSY,
  DROP_AFTER,
  DROP_HALF_WAY,
  EXPIRE,
  HANG,
  type PolicyOptions,
  type PolicyServer,
  RESTART,
  startPolicyServer,
} from "./policy-server.ts";

let policy: PolicyServer;
let client: TinkerClient;
afterEach(async () => {
  await client.close();
  await policy.stop();
});

async function ask(options: PolicyOptions, prompt: string, count = 1, timeoutMs = 500) {
  policy = await startPolicyServer(options);
  const retry = { firstDelayMs: 5, maxDelayMs: 20, deadlineMs: 60_000 };
  client = new TinkerClient({ baseUrl: policy.url, retry, timeoutMs, sampling: { pauseMs: 5, cautionMs: 5 } });
  const session = await client.createSession();
  const sampler = await session.createSampler({ baseModel: "toy" });
  const params = { maxTokens: 12, stop: [] };
  const future = await sampler.sample({ prompt: Int32Array.from(Buffer.from(prompt)), params, count });
  const { sequences } = await future.result();
  return sequences.map(({ tokens, stopReason }) => [Buffer.from(tokens).toString(), stopReason]);
}

test("answers in text by prompt and sample, and is cut where the request says", async () => {
  const answer = (prompt: string, { sample }: { sample: number }) =>
    sample === 0 ? `${prompt}!` : { text: "a long answer that goes on", stop: "stop" as const };
  expect(await ask({ answer }, "hello", 2)).toEqual([
    ["hello!", "stop"],
    ["a long answe", "length"],
  ]);
  expect(policy.prompts).toEqual(["hello"]);
});

test("knows how often a prompt was asked", async () => {
  const seen: number[] = [];
  const answer = (_: string, { repeat }: { repeat: number }) => {
    seen.push(repeat);
    return "x";
  };
  await ask({ answer }, "again");
  const sampler = await (await client.createSession()).createSampler({ baseModel: "toy" });
  const request = { prompt: Int32Array.from(Buffer.from("again")), params: { maxTokens: 2, stop: [] } };
  await (await sampler.sample(request)).result();
  expect(seen).toEqual([0, 1]);
});

describe("a client gets the answer through", () => {
  const cases = [
    ["429 on a sample", "/asample", BUSY],
    ["500 on a sample", "/asample", BROKEN],
    ["a lost answer to a sample", "/asample", DROP_AFTER],
    ["a hanging sample", "/asample", HANG],
    ["429 on a result", "/retrieve_future", BUSY],
    ["500 on a result", "/retrieve_future", BROKEN],
    ["a result cut half-way", "/retrieve_future", DROP_HALF_WAY],
    ["a forgotten result", "/retrieve_future", EXPIRE],
  ] as const;
  test.each(cases)("%s", async (_, path, fault) => {
    const faults = [{ path, at: 1, fault }];
    expect(await ask({ answer: () => "fine", faults }, "hello")).toEqual([["fine", "stop"]]);
    expect(policy.server.count(path)).toBeGreaterThanOrEqual(2);
  });
});

test("a restarted server has forgotten the session", async () => {
  const faults = [{ path: "/create_sampling_session", at: 1, fault: RESTART }];
  await expect(ask({ answer: () => "fine", faults }, "hello")).rejects.toMatchObject({ kind: "gone" });
});
