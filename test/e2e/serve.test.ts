/** A server that others may use: what it listens on, and how its key is given to them. */
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { TestProject } from "./project.ts";

const MODEL = ["--base-model", "builtin:tiny"];

function newProject(): TestProject {
  const project = new TestProject({});
  onTestFinished(async () => {
    project.run(["serve", "stop", "--force", ...MODEL]);
    await project.close();
  });
  return project;
}

test("beyond loopback everyone is asked for the key, which `serve token` prints", async () => {
  const project = newProject();
  const started = project.ok("serve", "start", ...MODEL, "--host", "0.0.0.0");
  expect(started).toMatch(/answers only those who send its key/);
  expect(started).toContain("`rlcli serve token --base-model builtin:tiny`");
  const token = project.ok("serve", "token", ...MODEL).trim();
  expect(token).toMatch(/^tml-/);
  expect(started).not.toContain(token);
  const status = project.ok("serve", "status", ...MODEL, "--json");
  expect(status).not.toContain(token);
  const [{ url }] = JSON.parse(status).servers;
  const ask = (headers: Record<string, string>) => fetch(`${url}/api/v1/healthz`, { headers });
  expect((await ask({})).status).toBe(401);
  expect((await ask({ "X-API-Key": token })).status).toBe(200);
  const elsewhere = project.run(["serve", "start", ...MODEL, "--host", "127.0.0.1"]);
  expect(elsewhere.code).toBe(1);
  expect(elsewhere.err).toContain("RL5008");
});

test("--wait gives up in time, says so, and leaves nothing behind", () => {
  const project = newProject();
  project.write("uv", "#!/bin/sh\nsleep 600\n");
  chmodSync(join(project.folder, "uv"), 0o755);
  project.env.RLCLI_UV = join(project.folder, "uv");
  const started = performance.now();
  const { code, err } = project.run(["serve", "start", "--base-model", "org/model", "--gpus", "0", "--wait", "2"]);
  expect(code).toBe(1);
  expect(err).toContain("RL5023");
  expect(err).toContain("after the 2 s of --wait");
  expect(performance.now() - started).toBeLessThan(60_000);
});

test("there is no key without a server, and no address for a spec's server on the command line", () => {
  const project = newProject();
  expect(project.run(["serve", "token", ...MODEL]).err).toContain("RL9009");
  expect(project.run(["serve", "start", "--host", "0.0.0.0"]).err).toContain("RL9003");
  expect(project.run(["serve", "start", "--port", "1"]).err).toContain("RL9003");
});

test("`serve list` shows what runs in other folders too, by folder, until it stops; --here does not", () => {
  const spec = "rlcli: 1\nproject: p\nserver: { backend: embedded, model: builtin:tiny }\n";
  const adhoc = newProject();
  const other = new TestProject({ "rlcli.yaml": spec });
  onTestFinished(async () => {
    other.run(["serve", "stop", "--force"]);
    await other.close();
  });
  const state = join(adhoc.folder, "state");
  for (const project of [adhoc, other]) project.env.XDG_STATE_HOME = state;
  adhoc.ok("serve", "start", ...MODEL);
  other.ok("serve", "start");
  const rows = (...args: string[]) => JSON.parse(adhoc.ok("serve", "list", "--json", ...args));
  const all = rows();
  expect(all.formatVersion).toBe(2);
  expect(all.servers).toMatchObject([
    { address: "server.default", state: "running", folder: adhoc.folder, flags: "--base-model builtin:tiny" },
    { address: "server.default", state: "running", folder: other.folder, model: "builtin:tiny", sessions: 0 },
  ]);
  expect(rows("--here").servers).toEqual([{ ...all.servers[0], uptimeSeconds: expect.any(Number) }]);
  expect(adhoc.ok("serve", "list")).toMatch(/^server\.default .*\nin \S+\nserver\.default .* running .*\n$/);
  // From there it is the other way round; a server that the spec has no more is still shown.
  other.write("rlcli.yaml", spec.replace(/server:.*\n/, ""));
  const listed: readonly { folder: string; flags?: string }[] = JSON.parse(other.ok("serve", "list", "--json")).servers;
  expect(listed.map(({ folder }) => folder).sort()).toEqual([adhoc.folder, other.folder].sort());
  other.write("rlcli.yaml", spec);
  adhoc.ok("-C", other.folder, "serve", "stop");
  expect(rows().servers).toHaveLength(1);
  const flags = listed.find(({ folder }) => folder === adhoc.folder)?.flags ?? "";
  other.ok("serve", "stop", ...flags.split(" "));
  expect(rows().servers).toMatchObject([{ state: "stopped" }]);
});

test("`serve list` names the server of a verb with the flags that stop it", () => {
  const project = newProject();
  const row = { messages: [1, 2].map((n) => ({ role: n === 1 ? "user" : "assistant", content: `${n}` })) };
  project.write("rows.jsonl", `${JSON.stringify(row)}\n`);
  project.ok("train", "sl", "--model", "builtin:tiny", "--dataset", "rows.jsonl", "--steps", "1");
  const rows = () => JSON.parse(project.ok("serve", "list", "--here", "--json")).servers;
  const [{ state, flags }] = rows();
  expect(state).toBe("running");
  expect(flags).toMatch(/^-f \.rlcli\/adhoc\/\w+\/rlcli\.yaml$/);
  project.ok("serve", "stop", ...flags.split(" "));
  expect(rows()).toMatchObject([{ state: "stopped" }]);
});
