/**
 * Datasets by name: a registry file by path and address, and tasks in a git repository, which is a local one here. Public datasets
 * (terminal-bench) take the same way and are not fetched by tests.
 */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { taskDigest } from "../../../src/environments/harbor/digest.ts";
import { cachedFolder, fetchTasks, resolveCommit } from "../../../src/environments/harbor/git.ts";
import { readRegistry } from "../../../src/environments/harbor/registry.ts";
import { TestProject } from "../../e2e/project.ts";
import { HARBOR_FIXTURES } from "../../support/docker.ts";

const scratch = mkdtempSync(join(tmpdir(), "harbor-datasets-"));
afterAll(() => rmSync(scratch, { recursive: true, force: true }));
const signal = new AbortController().signal;
const remote = join(scratch, "remote");
const git = (...args: string[]) =>
  execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@example.org", ...args], {
    cwd: remote,
    encoding: "utf8",
  }).trim();
let first = "";
let second = "";

beforeAll(() => {
  mkdirSync(remote);
  git("init", "--quiet", "--initial-branch", "main");
  cpSync(join(HARBOR_FIXTURES, "hello-file"), join(remote, "tasks/hello-file"), { recursive: true });
  cpSync(join(HARBOR_FIXTURES, "partial-credit"), join(remote, "tasks/partial-credit"), { recursive: true });
  writeFileSync(join(remote, "large.bin"), "x".repeat(1 << 16));
  git("add", "-A");
  git("commit", "--quiet", "-m", "one");
  first = git("rev-parse", "HEAD");
  writeFileSync(join(remote, "tasks/hello-file/instruction.md"), "Another instruction.\n");
  git("commit", "--quiet", "-am", "two");
  git("tag", "-a", "v2", "-m", "two");
  second = git("rev-parse", "HEAD");
});

const registry = (commit: string | undefined, version = "1.0") => [
  {
    name: "bench",
    version,
    description: "",
    tasks: ["hello-file", "partial-credit"].map((name) => ({
      name,
      git_url: remote,
      ...(commit === undefined ? {} : { git_commit_id: commit }),
      path: `tasks/${name}`,
    })),
  },
];

test("tasks come out of a repository at a commit, only they, once", async () => {
  const cache = join(scratch, "cache");
  const task = (commit: string, name = "hello-file") => ({ url: remote, commit, path: `tasks/${name}` });
  await fetchTasks([task(first), task(first, "partial-credit"), task(second)], cache, signal);
  expect(taskDigest(cachedFolder(cache, task(first)))).toBe(taskDigest(join(HARBOR_FIXTURES, "hello-file")));
  expect(readFileSync(join(cachedFolder(cache, task(second)), "instruction.md"), "utf8")).toBe(
    "Another instruction.\n",
  );
  const [repository] = readdirSync(join(cache, "harbor/git")).filter((name) => !name.endsWith(".lock"));
  expect(existsSync(join(cache, "harbor/git", repository!, "large.bin"))).toBe(false);
  // Nothing is asked of the repository for what is here.
  await fetchTasks([{ ...task(first) }], cache, AbortSignal.abort());
});

test("what is not in a repository, or leads out of it, is told", async () => {
  const cache = join(scratch, "cache-faults");
  const fetchOne = (task: { url?: string; commit?: string; path: string }) =>
    fetchTasks([{ url: remote, commit: first, ...task }], cache, signal);
  await expect(fetchOne({ path: "tasks/nope" })).rejects.toThrow(/RL7207.*no folder tasks\/nope/);
  await expect(fetchOne({ path: "../etc" })).rejects.toThrow(/RL7207.*leads out/);
  await expect(fetchOne({ path: "x", url: join(scratch, "no-repository") })).rejects.toThrow(/RL7207.*git fetch/);
  await expect(fetchOne({ path: "x", commit: "0".repeat(40) })).rejects.toThrow(/RL7207/);
});

test("branches and tags become the commit that they stand for", async () => {
  expect(await resolveCommit(remote, undefined, signal)).toBe(second);
  expect(await resolveCommit(remote, "v2", signal)).toBe(second);
  expect(await resolveCommit(remote, first, signal)).toBe(first);
  await expect(resolveCommit(remote, "nope", signal)).rejects.toThrow(/RL7207.*no `nope`/);
});

test("registries by path and address; local tasks lie beside the file", async () => {
  const [old, current] = await readRegistry(join(HARBOR_FIXTURES, "registry.json"), "/", signal);
  expect([old?.version, current?.version]).toEqual(["0.9", "1.0"]);
  expect(old?.tasks).toEqual([{ name: "hello-file", path: join(HARBOR_FIXTURES, "hello-file") }]);
  const server = createServer((request, response) => {
    if (request.url === "/registry.json") response.end(JSON.stringify(registry(first)));
    else response.writeHead(404).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  expect((await readRegistry(`${base}/registry.json`, "/", signal))[0]?.tasks[0]).toMatchObject({
    gitUrl: remote,
    commit: first,
  });
  await expect(readRegistry(`${base}/nope.json`, "/", signal)).rejects.toThrow(/RL7207.*answers 404/);
  await expect(readRegistry(join(scratch, "nope.json"), "/", signal)).rejects.toThrow(/RL7207/);
});

test("the address of a repository holds no secret: it goes into the lock", async () => {
  const file = join(scratch, "secret.json");
  const [bench] = registry(first);
  const tasks = [{ ...bench!.tasks[0], git_url: "https://x-access-token:hunter2@git.example.org/tasks.git" }];
  writeFileSync(file, JSON.stringify([{ ...bench, tasks }]));
  await expect(readRegistry(file, "/", signal)).rejects.toThrow(/^((?!hunter2)[\s\S])*RL7207((?!hunter2)[\s\S])*$/);
});

test("a dataset is locked at its commits and digests, and moves only when it is asked to", () => {
  const project = new TestProject({
    "rlcli.yaml":
      "rlcli: 1\nproject: test\nserver: { backend: embedded, model: builtin:tiny }\nenvironments:\n  box: { type: harbor, tasks: bench@1.0, registry: registry.json }\nruns:\n  agent: { type: rl, environment: box, loss: gspo, steps: 1 }\n",
    "registry.json": JSON.stringify(registry(undefined)),
  });
  project.env.RLCLI_CACHE = join(scratch, "cache-locked");
  onTestFinished(() => project.close());
  const locked = () => JSON.parse(readFileSync(join(project.folder, "rlcli.lock"), "utf8")).entries["harbor:bench@1.0"];
  expect(project.run(["plan", "--locked"]).err).toMatch(/RL2006/);
  project.ok("plan");
  expect(locked()).toMatchObject({
    type: "harbor-dataset",
    version: "1.0",
    tasks: [{ name: "hello-file", commit: second }, {}],
  });
  expect(locked().tasks[1].digest).toBe(taskDigest(join(HARBOR_FIXTURES, "partial-credit")));
  // The registry names another commit now; the lock decides.
  project.write("registry.json", JSON.stringify(registry(first)));
  project.ok("plan", "--locked");
  expect(locked().tasks[0].commit).toBe(second);
  project.ok("lock", "--upgrade");
  expect(locked().tasks[0].commit).toBe(first);
  // A copy in the cache that was changed is noticed.
  const folder = cachedFolder(project.env.RLCLI_CACHE, { url: remote, commit: first, path: "tasks/hello-file" });
  writeFileSync(join(folder, "instruction.md"), "changed");
  expect(project.run(["plan"]).err).toMatch(/RL7208/);
});

test("a mirror is looked into before any registry; what is nowhere is told", () => {
  const mirror = join(scratch, "mirror");
  cpSync(join(HARBOR_FIXTURES, "hello-file"), join(mirror, "bench@1.0/hello-file"), { recursive: true });
  const project = new TestProject({ "registry.json": JSON.stringify(registry(first)) });
  onTestFinished(() => project.close());
  expect(project.ok("env", "list", "bench@1.0", "--mirror", mirror)).toMatch(/^hello-file/);
  expect(project.run(["env", "list", "bench@3.0", "--registry", "registry.json"]).err).toMatch(
    /RL7206[\s\S]*no version `3\.0`/,
  );
  expect(project.run(["env", "list", "org/bench@3.0", "--registry", "registry.json"]).err).toMatch(
    /RL7206[\s\S]*not\s+supported/,
  );
});
