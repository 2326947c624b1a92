/** Heartbeats of a program whose event loop is busy: the program is a process of its own, so that the server is not. */
import { spawn } from "node:child_process";
import { afterAll, beforeAll, expect, test } from "vitest";
import { FakeServer } from "./fake-server.ts";

let server: FakeServer;
beforeAll(async () => {
  server = await new FakeServer().start();
});
afterAll(async () => {
  await server.stop();
});

const bundle = new URL("../../dist/tinker.js", import.meta.url).href;

/** What the program prints, by line. */
function runProgram(body: string): Promise<readonly string[]> {
  const program = `
    import { TinkerClient } from ${JSON.stringify(bundle)};
    const client = new TinkerClient({ baseUrl: ${JSON.stringify(server.url)}, apiKey: "tml-key" });
    const say = (word) => console.log(word + " " + Date.now());
    const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const block = (ms) => { const until = Date.now() + ms; while (Date.now() < until); };
    ${body}`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program]);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => (code === 0 ? resolve(output.trim().split("\n")) : reject(new Error(output))));
  });
}

test("go on while the event loop is blocked, and stop with the session", async () => {
  const beats: { at: number; key: unknown }[] = [];
  server.fault = ({ path, headers }) => {
    if (path === "/session_heartbeat") beats.push({ at: Date.now(), key: headers["x-api-key"] });
    return undefined;
  };
  const lines = await runProgram(`
    const session = await client.createSession({ heartbeatMs: 200 });
    await wait(2000);
    say("blocked");
    block(4000);
    say("free");
    session.stopHeartbeat();
    await wait(50);
    say("stopped");
    await wait(1000);
    await client.close();
    say("closed");`);
  const at = Object.fromEntries(lines.map((line) => line.split(" ") as [string, string]));
  const between = (from: string, to: string) =>
    beats.filter((beat) => beat.at > Number(at[from]) && beat.at < Number(at[to]));
  expect(between("blocked", "free").length).toBeGreaterThanOrEqual(5);
  expect(between("stopped", "closed").length).toBeLessThanOrEqual(1);
  expect(new Set(beats.map(({ key }) => key))).toEqual(new Set(["tml-key"]));
});

test("do not keep a program running that has nothing left to do", async () => {
  await runProgram(`
    await client.createSession({ heartbeatMs: 100 });
    await wait(300);`);
});
