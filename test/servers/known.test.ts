/** The index of servers that run: entries come with servers and go with them, whoever looks. */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { ownIdentity } from "../../src/process.ts";
import { indexFolder, knownServers, noteServer, type ServerPlace } from "../../src/servers/known.ts";
import { RUNTIME_VERSION, writeRuntime, writeStopped } from "../../src/servers/runtime.ts";

let root: string;
let index: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "rlcli-known-"));
  index = indexFolder({ XDG_STATE_HOME: join(root, "state") });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** A server whose process is this one. */
function serverIn(project: string, name = "default"): ServerPlace {
  const folder = join(root, project, ".rlcli/servers", name);
  writeRuntime(folder, {
    formatVersion: RUNTIME_VERSION,
    process: ownIdentity(),
    url: "http://127.0.0.1:1",
    host: "127.0.0.1",
    token: "tml-secret",
    model: "builtin:tiny",
    modelFolder: "/m",
    startedAt: new Date().toISOString(),
    serverRun: project,
  });
  return { address: `server.${name}`, folder, project: join(root, project) };
}

const places = () => knownServers(index).map(({ project, address }) => `${project.slice(root.length + 1)} ${address}`);

test("servers are known from anywhere while they run; nothing of their keys is in the index", () => {
  const [b, a] = [serverIn("b"), serverIn("a")];
  for (const place of [b, a, serverIn("a", "other"), a]) noteServer(index, place);
  expect(places()).toEqual(["a server.default", "a server.other", "b server.default"]);
  writeStopped(b.folder, "b", "idle");
  expect(places()).toEqual(["a server.default", "a server.other"]);
  rmSync(join(root, "a"), { recursive: true });
  // Whoever notes another takes away what is stale.
  noteServer(index, serverIn("c"));
  expect(readdirSync(index)).toHaveLength(1);
});

test("what is no entry goes, one of a later version stays and is not understood", () => {
  noteServer(index, serverIn("a"));
  writeFileSync(join(index, "torn.json"), '{"formatVersion":1,"addr');
  writeFileSync(join(index, "later.json"), '{"formatVersion":2,"where":"elsewhere"}');
  expect(places()).toEqual(["a server.default"]);
  expect(existsSync(join(index, "torn.json"))).toBe(false);
  expect(existsSync(join(index, "later.json"))).toBe(true);
});

test("a place that cannot be written is no fault of the server", () => {
  writeFileSync(join(root, "state"), "a file");
  expect(() => noteServer(index, serverIn("a"))).not.toThrow();
  expect(places()).toEqual([]);
});
