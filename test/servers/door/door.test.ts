/** The front door before a server of the test's own: who is let in, and that what passes is what was sent. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { Agent, request } from "undici";
import { afterEach, expect, onTestFinished, test } from "vitest";
import { Door, type DoorSettings, RUN_HEADER } from "../../../src/servers/door/door.ts";
import { certificate } from "./certificate.ts";

const TOKEN = "tml-for-tests";
const KEY = { "x-api-key": TOKEN };
const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function behind(answer: Answer): Promise<number> {
  const server: Server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return (server.address() as AddressInfo).port;
}

async function open(answer: Answer | undefined, changes: Partial<DoorSettings> = {}): Promise<Door> {
  const door = new Door({
    host: "127.0.0.1",
    port: 0,
    token: TOKEN,
    isGuarded: true,
    status: () => ({ state: "serving" }),
    ...changes,
  });
  await door.open();
  closing.push(() => door.close());
  if (answer) door.lead({ port: await behind(answer), serverRun: "life-1" });
  return door;
}

const echo: Answer = (request, response) => {
  response.writeHead(200, { "content-type": request.headers["content-type"] ?? "text/plain", "x-path": request.url });
  request.pipe(response);
};

test("lets in who has the key, in either form, and nobody else", async () => {
  const door = await open(echo);
  const status = async (headers: Record<string, string>) => (await fetch(`${door.url}/api/v1/x`, { headers })).status;
  expect(await status({})).toBe(401);
  expect(await status({ "x-api-key": "tml-for-test" })).toBe(401);
  expect(await status({ authorization: `Basic ${TOKEN}` })).toBe(401);
  expect(await status(KEY)).toBe(200);
  expect(await status({ authorization: `Bearer ${TOKEN}` })).toBe(200);
});

test("asks for no key where it is told not to", async () => {
  const door = await open(echo, { isGuarded: false });
  expect((await fetch(`${door.url}/api/v1/healthz`)).status).toBe(200);
});

test("passes method, path, query, body and status as they are; the key stays at the door", async () => {
  const seen: IncomingMessage[] = [];
  const door = await open((incoming, response) => {
    seen.push(incoming);
    response.writeHead(418, { "x-reply": "yes" });
    incoming.pipe(response);
  });
  const body = Buffer.from([0, 255, 10, 13]);
  const reply = await fetch(`${door.url}/api/v1/a%2Fb?c=d&e`, { method: "DELETE", headers: KEY, body });
  expect(reply.status).toBe(418);
  expect(reply.headers.get("x-reply")).toBe("yes");
  expect(reply.headers.get(RUN_HEADER)).toBe("life-1");
  expect(Buffer.from(await reply.arrayBuffer())).toEqual(body);
  expect([seen[0]!.method, seen[0]!.url]).toEqual(["DELETE", "/api/v1/a%2Fb?c=d&e"]);
  expect(seen[0]!.headers).not.toHaveProperty("x-api-key");
});

test("streams: the first bytes arrive while the rest is still to come, both ways", async () => {
  const door = await open((incoming, response) => {
    incoming.once("data", (first: Buffer) => response.write(first));
    incoming.once("end", () => response.end("end"));
  });
  let finish = () => {};
  const sent = new ReadableStream({
    start(controller) {
      controller.enqueue(Buffer.from("begin"));
      finish = () => controller.close();
    },
  });
  const reply = await request(`${door.url}/x`, { method: "POST", headers: KEY, body: sent as never });
  const parts = reply.body[Symbol.asyncIterator]();
  expect(String((await parts.next()).value)).toBe("begin");
  finish();
  expect(String((await parts.next()).value)).toBe("end");
});

test("500 long polls at once, all held and all answered, with bodies that stay apart", async () => {
  const held: (() => void)[] = [];
  const door = await open(async (incoming, response) => {
    const parts: Buffer[] = [];
    for await (const part of incoming) parts.push(part as Buffer);
    held.push(() => response.end(Buffer.concat(parts)));
    if (held.length === 500) for (const answer of held) answer();
  });
  const dispatcher = new Agent({ connections: 500, pipelining: 1 });
  onTestFinished(() => dispatcher.close());
  const asked = Array.from({ length: 500 }, async (_, at) => {
    const body = `${at} `.repeat(1000);
    const reply = await request(`${door.url}/api/v1/retrieve_future`, {
      method: "POST",
      headers: KEY,
      body,
      dispatcher,
    });
    return reply.statusCode === 200 && (await reply.body.text()) === body;
  });
  expect((await Promise.all(asked)).filter((isRight) => isRight)).toHaveLength(500);
  await expect.poll(() => door.activity.usage.openRequests).toBe(0);
}, 120_000);

test("a client that leaves takes its long poll with it", async () => {
  let hasArrived = false;
  let isGone = false;
  const door = await open((_, response) => {
    hasArrived = true;
    response.once("close", () => {
      isGone = true;
    });
  });
  const leave = new AbortController();
  const asked = fetch(`${door.url}/api/v1/retrieve_future`, {
    method: "POST",
    headers: KEY,
    body: "{}",
    signal: leave.signal,
  });
  // A client that leaves before its request is there takes nothing with it.
  await expect.poll(() => hasArrived).toBe(true);
  leave.abort();
  await expect(asked).rejects.toThrow();
  await expect.poll(() => isGone).toBe(true);
});

test("while nothing is behind it, it says what is waited for and when to come again", async () => {
  const door = await open(undefined);
  door.lead({ waitingFor: "the server to start again after a crash" });
  const reply = await fetch(`${door.url}/api/v1/healthz`, { headers: KEY });
  expect([reply.status, reply.headers.get("retry-after")]).toEqual([503, "2"]);
  expect(await reply.json()).toEqual({ detail: "waiting for the server to start again after a crash" });
  expect(reply.headers.has(RUN_HEADER)).toBe(false);
  expect(await (await fetch(`${door.url}/rlcli/status`, { headers: KEY })).json()).toEqual({ state: "serving" });
});

test("a server that breaks off breaks off at the client too, never a whole answer", async () => {
  let breakOff = () => {};
  const door = await open((_, response) => {
    response.writeHead(200, { "content-length": "100" });
    response.write("half");
    breakOff = () => response.destroy();
  });
  const reply = await fetch(`${door.url}/x`, { headers: KEY });
  breakOff();
  await expect(reply.text()).rejects.toThrow();
});

test("a server that is not there is a 503", async () => {
  const door = await open(undefined);
  door.lead({ port: 1, serverRun: "life-1" });
  expect((await fetch(`${door.url}/x`, { headers: KEY })).status).toBe(503);
});

test("learns of sessions, models and saves from what passes", async () => {
  const answers: Record<string, [number, object]> = {
    "/api/v1/create_session": [200, { session_id: "session_1" }],
    "/api/v1/create_model": [200, { request_id: "1" }],
    "/api/v1/save_weights": [200, { request_id: "2" }],
    "/api/v1/save_weights_for_sampler": [200, { request_id: "3" }],
  };
  let isDone = false;
  const door = await open((incoming, response) => {
    incoming.resume();
    const [status, body] = answers[incoming.url!] ?? [isDone ? 200 : 408, {}];
    response.writeHead(status).end(JSON.stringify(body));
  });
  const post = async (path: string, body: object) => {
    const reply = await fetch(`${door.url}/api/v1/${path}`, {
      method: "POST",
      headers: KEY,
      body: JSON.stringify(body),
    });
    await reply.arrayBuffer();
  };
  // What has passed is understood a moment later.
  const usage = () => expect.poll(() => door.activity.usage);
  const saves = () => expect.poll(() => [...door.activity.saves]);
  await post("create_session", {});
  await post("create_model", {});
  await usage().toMatchObject({ sessions: 1, models: 1, openRequests: 0 });
  await post("save_weights", {});
  await post("save_weights_for_sampler", {});
  await saves().toEqual(["2", "3"]);
  await post("retrieve_future", { request_id: "2" });
  await usage().toMatchObject({ openRequests: 0 });
  await saves().toEqual(["2", "3"]);
  isDone = true;
  await post("retrieve_future", { request_id: "2" });
  await saves().toEqual(["3"]);
  door.activity.engineStarted();
  expect(door.activity.usage).toMatchObject({ sessions: 0, models: 0 });
});

test.skipIf(certificate === undefined)("speaks TLS, and on loopback to this machine's own rlcli without", async () => {
  const door = await open(echo, { tls: certificate! });
  expect(door.publicUrl).toMatch(/^https:/);
  const dispatcher = new Agent({ connect: { ca: certificate!.cert } });
  onTestFinished(() => dispatcher.close());
  const ask = (headers: Record<string, string>) => request(`${door.publicUrl}/x`, { headers, dispatcher });
  expect((await ask(KEY)).statusCode).toBe(200);
  expect((await ask({})).statusCode).toBe(401);
  expect((await fetch(`${door.url}/x`, { headers: KEY })).status).toBe(200);
  expect((await fetch(`${door.url}/x`)).status).toBe(401);
});

test("a port that is taken is named", async () => {
  const first = await open(echo);
  const { port } = new URL(first.url);
  await expect(open(echo, { port: Number(port) })).rejects.toThrow(new RegExp(`Port ${port} on 127.0.0.1 is in use`));
});
