/** The trace of requests: everything that was tried is told, and nothing that was said. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Exchange, TinkerClient } from "../../src/tinker/index.ts";
import { Transport } from "../../src/tinker/transport.ts";
import { FakeServer } from "./fake-server.ts";

const KEY = "tml-planted-key";
const QUICK = { firstDelayMs: 1, maxDelayMs: 5, deadlineMs: 60_000 };

let server: FakeServer;
let seen: Exchange[];
beforeEach(async () => {
  server = await new FakeServer().start();
  seen = [];
});
afterEach(() => server.stop());

const onExchange = (exchange: Exchange) => void seen.push(exchange);

test("submissions and what waits for them are told with their numbers, times and bytes", async () => {
  const client = new TinkerClient({ baseUrl: server.url, apiKey: KEY, retry: QUICK, onExchange });
  const model = await (await client.createSession()).createModel({ baseModel: "toy", loraRank: 0 });
  const data = [
    {
      input: Int32Array.of(1, 2),
      lossInputs: { target_tokens: Int32Array.of(2, 3), weights: new Float32Array(2).fill(1) },
    },
  ];
  const pass = await model.forwardBackward(data, { name: "cross_entropy" });
  const step = await model.optimStep({ learning_rate: 0.1 });
  await pass.result();
  await step.result();
  const sampler = await (await model.sampler()).result();
  await (await sampler.sample({ prompt: Int32Array.of(1), params: { maxTokens: 1, stop: [] } })).result();
  await client.listCheckpoints(model.id);
  await client.close();
  const submitted = seen.filter(({ seq, request }) => seq !== undefined && request === undefined);
  expect(submitted.map(({ path, seq }) => [path, seq])).toEqual([
    ["/api/v1/forward_backward", 1],
    ["/api/v1/optim_step", 2],
    ["/api/v1/save_weights_for_sampler", 3],
    ["/api/v1/asample", 0],
  ]);
  const waits = seen.filter(({ path }) => path === "/api/v1/retrieve_future");
  for (const wait of waits) expect(wait).toMatchObject({ request: expect.any(String), status: 200 });
  expect(new Set(waits.map(({ seq }) => seq))).toEqual(new Set([undefined, 0, 1, 2, 3]));
  for (const exchange of seen) {
    expect(exchange).toMatchObject({ attempt: 1, method: expect.any(String), ms: expect.any(Number) });
    expect(exchange.sentBytes > 0).toBe(exchange.method === "POST");
    expect(exchange.receivedBytes).toBeGreaterThan(0);
  }
  expect(JSON.stringify(seen)).not.toContain(KEY);
});

test("each try is told: refusals by their status, silence by the code of the error", async () => {
  const answers = [503, 429];
  server.fault = () => {
    const status = answers.shift();
    return status === undefined ? undefined : { type: "answer", status };
  };
  const client = new TinkerClient({ baseUrl: server.url, retry: QUICK, timeoutMs: 1500, onExchange });
  await client.capabilities();
  expect(seen.map(({ attempt, status, error }) => [attempt, status ?? error])).toEqual([
    [1, 503],
    [2, 429],
    [3, 200],
  ]);
  seen = [];
  server.fault = () => ({ type: "hang" });
  await expect(client.health()).rejects.toThrow();
  await expect(client.health({ signal: AbortSignal.timeout(20) })).rejects.toThrow();
  expect(seen.map(({ error }) => error)).toEqual(["UND_ERR_HEADERS_TIMEOUT", "aborted"]);
  expect(seen[0]?.ms).toBeGreaterThan(1000);
  await client.close();
});

test("no query, no password of an address and no key is told, whatever happens", async () => {
  server.fault = () => ({ type: "answer", status: 400, body: "what was answered" });
  const transport = new Transport({ baseUrl: server.url, apiKey: KEY, retry: QUICK, onExchange });
  const body = Buffer.from(JSON.stringify({ prompt: "what was said" }));
  await transport.once({ method: "POST", path: "/asample?signature=in-the-query", body });
  await transport.close();
  const away = new Transport({ baseUrl: "http://me:in-the-address@127.0.0.1:9", apiKey: KEY, onExchange });
  await expect(away.once({ method: "GET", path: "/x?token=in-the-query" })).rejects.toThrow();
  await away.close();
  expect(seen.map(({ path, error }) => [path, error])).toEqual([
    ["/api/v1/asample", undefined],
    ["/api/v1/x", "ECONNREFUSED"],
  ]);
  for (const secret of [KEY, "in-the-query", "in-the-address", "what was said", "what was answered"])
    expect(JSON.stringify(seen)).not.toContain(secret);
});
