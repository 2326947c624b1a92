/** The action's scripts as a pipeline runs them: a real git remote, the real program, and a stand-in for GitHub's API. */
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { TestProject } from "../e2e/project.ts";

const main = new URL("../../action/main.mjs", import.meta.url).pathname;
const program = new URL("../../bin/rlcli.js", import.meta.url).pathname;
const TOKEN = "ghs_the-token-of-the-job";

interface Comment {
  readonly id: number;
  body: string;
}

/** Comments of one pull request, two a page however many are asked for. */
class FakeGitHub {
  readonly comments: Comment[] = [];
  status = 200;
  readonly #server = createServer((request, response) => this.#answer(request, response));

  async start(): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void this.#server.close());
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    if (this.status !== 200 || request.headers.authorization !== `Bearer ${TOKEN}`) {
      response.writeHead(this.status === 200 ? 401 : this.status).end("{}");
      return;
    }
    const url = new URL(request.url as string, "http://x");
    const one = /\/repos\/org\/repo\/issues\/comments\/(\d+)$/.exec(url.pathname);
    if (request.method === "PATCH" && one) {
      this.comments.find(({ id }) => id === Number(one[1]))!.body = JSON.parse(body).body;
      response.end("{}");
    } else if (url.pathname !== "/repos/org/repo/issues/7/comments") {
      response.writeHead(404).end("{}");
    } else if (request.method === "POST") {
      this.comments.push({ id: this.comments.length + 1, body: JSON.parse(body).body });
      response.end("{}");
    } else {
      const [page, size] = ["page", "per_page"].map((name) => Number(url.searchParams.get(name)));
      response.end(JSON.stringify(this.comments.slice((page! - 1) * size!, page! * size!)));
    }
  }
}

class Pipeline {
  readonly project = new TestProject();
  readonly remote = mkdtempSync(join(tmpdir(), "rlcli-remote-"));
  readonly github = new FakeGitHub();
  readonly #files = mkdtempSync(join(tmpdir(), "rlcli-runner-"));
  #url = "";

  async open(): Promise<this> {
    onTestFinished(async () => {
      await this.project.close();
      for (const folder of [this.remote, this.#files]) rmSync(folder, { recursive: true, force: true });
    });
    this.#url = await this.github.start();
    this.git("init", "--bare", this.remote);
    this.git("init", "-b", "main");
    this.git("remote", "add", "origin", this.remote);
    this.project.write(".gitignore", ".rlcli/\n");
    this.commit();
    return this;
  }

  git(...args: string[]): string {
    const names = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
    return execFileSync("git", [...names, ...args], { cwd: this.project.folder, encoding: "utf8", stdio: "pipe" });
  }

  commit(): void {
    this.git("add", "-A");
    this.git("commit", "-m", "change", "--allow-empty");
  }

  get plans(): readonly string[] {
    const out = execFileSync("git", ["for-each-ref", "--format=%(refname)"], { cwd: this.remote, encoding: "utf8" });
    return out.split("\n").filter((line) => line.startsWith("refs/rlcli/plans/"));
  }

  /** A job of its own, with its summary and outputs. */
  async run(command: string, env: Readonly<Record<string, string>> = {}) {
    const at = (name: string) => join(this.#files, name);
    for (const name of ["summary", "output"]) writeFileSync(at(name), "");
    writeFileSync(
      at("event.json"),
      JSON.stringify(command === "plan" ? { pull_request: { number: 7, head: { sha: "0123456789abcdef" } } } : {}),
    );
    const child = spawn(process.execPath, [main], {
      env: {
        ...(this.project.env as NodeJS.ProcessEnv),
        CI: "true",
        GITHUB_API_URL: this.#url,
        GITHUB_REPOSITORY: "org/repo",
        GITHUB_WORKSPACE: this.project.folder,
        GITHUB_EVENT_PATH: at("event.json"),
        GITHUB_STEP_SUMMARY: at("summary"),
        GITHUB_OUTPUT: at("output"),
        RLCLI_ACTION_COMMAND: command,
        RLCLI_ACTION_TOKEN: TOKEN,
        RLCLI_ACTION_RLCLI: `${process.execPath} ${program}`,
        ...env,
      },
    });
    const [out, code] = await Promise.all([
      text(child.stdout),
      new Promise<number | null>((resolve) => child.once("close", resolve)),
      text(child.stderr),
    ]);
    return { code, out, summary: readFileSync(at("summary"), "utf8"), output: readFileSync(at("output"), "utf8") };
  }
}

test("action.yml gives the scripts everything that they read", () => {
  const { runs, inputs } = parse(readFileSync(new URL("../../action/action.yml", import.meta.url), "utf8"));
  const { env } = runs.steps[0] as { env: Record<string, string> };
  const read = new Set(
    readFileSync(new URL("../../action/run.mjs", import.meta.url), "utf8").match(/RLCLI_ACTION_\w+/g),
  );
  expect(new Set(Object.keys(env))).toEqual(read);
  for (const value of Object.values(env)) {
    const [, name] = /^\$\{\{ inputs\.(\S+) \}\}$/.exec(value) ?? [];
    expect(Object.keys(inputs)).toContain(name);
  }
});

test("from a pull request to its merge: one comment, and the reviewed plan carried out once", async () => {
  const pipeline = await new Pipeline().open();
  const { github, project } = pipeline;
  for (let i = 0; i < 120; i++) github.comments.push({ id: i + 1, body: "somebody's words" });

  const first = await pipeline.run("plan");
  expect(first).toMatchObject({ code: 0, output: "changes=true\n" });
  expect(first.summary).toContain("3 to create");
  expect(github.comments).toHaveLength(121);
  project.edit("rlcli.yaml", "steps: 6", "steps: 4");
  pipeline.commit();
  expect((await pipeline.run("plan")).code).toBe(0);
  expect(github.comments).toHaveLength(121);
  expect(github.comments.at(-1)!.body).toContain("+ steps  4");
  expect(github.comments.at(-1)!.body).toContain("_Made of 0123456789ab. A merge applies exactly this");
  expect(pipeline.plans).toHaveLength(2);
  expect(pipeline.git("status", "--porcelain")).toBe("");

  // Merged by a commit of its own: another commit, the same tree.
  pipeline.git("commit", "--allow-empty", "-m", "Merge");
  const applied = await pipeline.run("apply");
  expect(applied, applied.out).toMatchObject({ code: 0 });
  expect(project.record("run.count")).toMatchObject({ status: "ready", results: { step: 4 } });
  expect(pipeline.plans).toHaveLength(1);
  expect(await pipeline.run("apply")).toMatchObject({ code: 0, summary: expect.stringContaining("Nothing to apply") });
  expect(await pipeline.run("drift")).toMatchObject({ code: 0, output: "changes=false\n" });

  // A pull request that was closed long ago left its plan behind.
  const dated = { ...process.env, GIT_COMMITTER_DATE: "2020-01-01T00:00:00Z", GIT_AUTHOR_DATE: "2020-01-01T00:00:00Z" };
  const people = ["-c", "user.name=test", "-c", "user.email=test@localhost"];
  const args = [...people, "commit-tree", "HEAD^{tree}", "-m", "old"];
  const old = execFileSync("git", args, { cwd: project.folder, encoding: "utf8", env: dated }).trim();
  pipeline.git("push", "origin", `${old}:refs/rlcli/plans/${"0".repeat(40)}/old`);
  expect(pipeline.plans).toHaveLength(2);
  expect(await pipeline.run("drift")).toMatchObject({ code: 0 });
  expect(pipeline.plans).toHaveLength(1);

  // Somebody applies something else after the review.
  project.edit("rlcli.yaml", "steps: 4", "steps: 6");
  pipeline.commit();
  expect((await pipeline.run("plan")).code).toBe(0);
  project.ok("state", "taint", "run.count");
  const stale = await pipeline.run("apply");
  expect(stale.code).toBe(1);
  expect(stale.summary).toMatch(/RL2002[\s\S]*the record of\s+run\.count/);
  project.ok("state", "untaint", "run.count");
  project.edit("rlcli.yaml", "steps: 6", "steps: 4");
  pipeline.commit();

  // The branch moves on without a review of what comes out of it.
  project.edit("rlcli.yaml", "steps: 4", "steps: 5");
  pipeline.commit();
  const refused = await pipeline.run("apply");
  expect(refused.code).toBe(1);
  expect(refused.out).toContain("No reviewed plan was made of exactly these files");
  expect(project.record("run.count").results).toMatchObject({ step: 4 });
  const drifted = await pipeline.run("drift");
  expect(drifted).toMatchObject({ code: 1, output: "changes=true\n" });
  expect(drifted.summary).toContain("1 to extend");
}, 240_000);

test("a spec with faults, a token without rights, arguments, and what is no command", async () => {
  const pipeline = await new Pipeline().open();
  const { github, project } = pipeline;
  const planned = await pipeline.run("plan", { RLCLI_ACTION_ARGUMENTS: "--target server.default\n" });
  expect(planned.summary).toContain("1 to create");

  project.edit("rlcli.yaml", "batch_size", "batch_sise");
  pipeline.commit();
  expect(await pipeline.run("plan")).toMatchObject({ code: 1 });
  expect(github.comments).toHaveLength(1);
  expect(github.comments[0]!.body).toMatch(/There is no plan[\s\S]*Did you mean `batch_size`/);
  expect(github.comments[0]!.body).not.toContain(TOKEN);

  project.edit("rlcli.yaml", "batch_sise", "batch_size");
  pipeline.commit();
  github.status = 403;
  const unheard = await pipeline.run("plan");
  expect(unheard.code).toBe(0);
  expect(unheard.out).toContain("::warning title=rlcli::The plan could not be written into the pull request");

  pipeline.git("remote", "set-url", "origin", join(pipeline.remote, "nowhere"));
  expect((await pipeline.run("plan")).summary).toContain("could not be kept");
  expect((await pipeline.run("nonsense")).out).toContain("There is no command `nonsense`");
  expect((await pipeline.run("plan", { RLCLI_ACTION_RLCLI: "no-such-program" })).out).toContain("cannot be run");
}, 240_000);
