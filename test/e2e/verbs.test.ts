/** Verbs without a spec: import, train sl, serve, sample, in pipes as the README shows them. */
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { ensureBuiltinModel } from "../../src/servers/builtin.ts";
import { QUESTIONS, TestProject } from "./project.ts";

const dump = QUESTIONS.map((question, at) => {
  const request = { model: "m", messages: [{ role: "user", content: question }] };
  const response = {
    choices: [{ index: 0, message: { role: "assistant", content: `${at + 1}` }, finish_reason: "stop" }],
  };
  return `${JSON.stringify({ request, response })}\n`;
}).join("");

function newProject(files: Record<string, string> = { "traces.jsonl": dump }): TestProject {
  const project = new TestProject(files);
  onTestFinished(async () => {
    for (const name of readdirSync(join(project.folder, ".rlcli/adhoc")).filter((entry) => entry !== "spool")) {
      project.run(["serve", "stop", "--force", "-f", join(".rlcli/adhoc", name, "rlcli.yaml")]);
    }
    await project.close();
  });
  return project;
}

const TRAIN = [
  "train",
  "sl",
  "--dataset",
  "-",
  "--model",
  "builtin:tiny",
  "--steps",
  "4",
  "--batch-size",
  "4",
  "--save-every",
  "2",
];

describe("import | train sl", () => {
  test("trains from a pipe, resumes by the same command, extends with more steps, and can be asked", () => {
    const project = newProject();
    const rows = project.ok("import", "traces.jsonl", "-f", "openai");
    expect(rows.trim().split("\n")).toHaveLength(8);
    expect(JSON.parse(rows.split("\n")[0]!)).toEqual({
      messages: [
        { role: "user", content: "one" },
        { role: "assistant", content: "1" },
      ],
    });
    const first = project.run(TRAIN, rows);
    expect(first.code, first.err).toBe(0);
    expect(first.out).toContain("Apply complete: 3 done.");
    const again = project.run(TRAIN, rows);
    expect(again.out).toContain("No changes.");
    const more = project.run(
      TRAIN.map((arg) => (arg === "4" ? "6" : arg)).map((arg, at, all) => (all[at - 1] === "--batch-size" ? "4" : arg)),
      rows,
    );
    expect(more.out).toContain("1 to extend");
    const [, spec] = /-f (\S+rlcli\.yaml)/.exec(first.out) ?? [];
    const answer = project.run([
      "sample",
      "train",
      "-f",
      spec!,
      "--prompt",
      "one",
      "--max-tokens",
      "3",
      "--temperature",
      "0",
      "--json",
    ]);
    expect(JSON.parse(answer.out)).toMatchObject({ tokens: expect.any(Array), stopReason: expect.any(String) });
  });

  test("--emit-spec prints the spec it stands for, and that spec is valid", () => {
    const project = newProject();
    const spec = project.ok(
      "train",
      "sl",
      "--dataset",
      "traces.jsonl",
      "--model",
      "builtin:tiny",
      "--lr",
      "0.003",
      "--emit-spec",
    );
    expect(spec).toContain("learning_rate: 0.003");
    project.write("rlcli.yaml", spec);
    expect(project.ok("validate")).toContain("Valid: 3 blocks");
    project.ok("train", "sl", "--dataset", "traces.jsonl", "--model", "builtin:tiny", "--dry-run");
  });

  test("what --emit-spec prints means the same on another machine as the command does here", () => {
    const tiny = ensureBuiltinModel("builtin:tiny", process.env.RLCLI_CACHE ?? join(tmpdir(), "rlcli-test-cache"));
    const shared = { "tasks.jsonl": '{"question":"1","answer":"1"}\n', "code/grade.mjs": "export default () => 1;\n" };
    const here = newProject(shared);
    const elsewhere = newProject();
    cpSync(tiny, join(here.folder, "code/model"), { recursive: true });
    for (const project of [here, elsewhere]) mkdirSync(join(project.folder, ".rlcli/adhoc"), { recursive: true });
    const lines = [
      ["--env", "module", "--module", "grade.mjs"],
      ["--env", "command", "--command", "node grade.mjs --strict"],
    ];
    for (const grader of lines) {
      const command = [
        "-C",
        "code",
        "train",
        "rl",
        "--dataset",
        "../tasks.jsonl",
        "--loss",
        "gspo",
        "--model",
        "model",
      ];
      const spec = here.ok(...command, ...grader, "--emit-spec");
      expect(spec).toContain("source: ../tasks.jsonl");
      expect(spec).toContain("./grade.mjs");
      expect(spec).toContain("model: ./model");
      expect(spec).not.toContain(here.folder);
      cpSync(join(here.folder, "tasks.jsonl"), join(elsewhere.folder, "tasks.jsonl"));
      cpSync(join(here.folder, "code"), join(elsewhere.folder, "code"), { recursive: true });
      elsewhere.write("code/rlcli.yaml", spec);
      here.ok(...command, ...grader, "--dry-run");
      const [name] = readdirSync(join(here.folder, "code/.rlcli/adhoc"));
      const hashes = (project: TestProject, file: string) =>
        JSON.parse(project.ok("plan", "--json", "-f", file)).changes.map(
          ({ address, after }: { address: string; after: { hash: string } }) => [address, after.hash],
        );
      const own = hashes(here, `code/.rlcli/adhoc/${name}/rlcli.yaml`);
      expect(own.map(([address]: [string]) => address)).toContain("run.train");
      // A server keeps its weights where its folder is: only that is another.
      const known = (all: [string, string][]) => all.filter(([address]) => !address.startsWith("server."));
      expect(known(hashes(elsewhere, "code/rlcli.yaml"))).toEqual(known(own));
      rmSync(join(here.folder, "code/.rlcli"), { recursive: true });
    }
  });

  test("a file whose name looks like a reference is that file", () => {
    const project = newProject({ "${var.x}.jsonl": dump });
    const run = project.run(["train", "sl", "--dataset", "${var.x}.jsonl", "--model", "builtin:tiny", "--dry-run"]);
    expect(run.code, run.err).toBe(0);
  });

  test("--log-path is the folder of it all, and never one with a spec of the user's own", () => {
    const project = newProject({ "rows.jsonl": dump, "mine/rlcli.yaml": "rlcli: 1\nproject: mine\n" });
    const train = (folder: string) =>
      project.run([...TRAIN.map((arg) => (arg === "-" ? "rows.jsonl" : arg)), "--log-path", folder]);
    onTestFinished(() => void project.run(["serve", "stop", "--force", "-f", "logs/a/rlcli.yaml"]));
    expect(train("logs/a").out).toContain("Apply complete: 3 done.");
    expect(readdirSync(join(project.folder, "logs/a/.rlcli/runs"))).toEqual(["train"]);
    expect(train("logs/a").out).toContain("No changes.");
    expect(train("mine")).toMatchObject({ code: 1, err: expect.stringContaining("RL9004") });
    project.ok("train", "sl", "--dataset", "rows.jsonl", "--model", "builtin:tiny", "--dry-run");
  });

  test("import --emit-spec gives the same rows in a spec", () => {
    const project = newProject();
    const flags = ["traces.jsonl", "-f", "openai", "--limit", "3", "--sample", "2"];
    project.write("rlcli.yaml", project.ok("import", ...flags, "--emit-spec"));
    const rows = project.ok("import", ...flags);
    project.ok("apply", "--auto-approve");
    const [digest] = readdirSync(join(project.folder, ".rlcli/datasets"));
    expect(readFileSync(join(project.folder, ".rlcli/datasets", digest!, "rows.jsonl"), "utf8")).toBe(rows);
    mkdirSync(join(project.folder, ".rlcli/adhoc"));
  });

  test("what is missing is said, not guessed", () => {
    const project = newProject();
    const noModel = project.run(["train", "sl", "--dataset", "traces.jsonl"]);
    expect(noModel.code).toBe(1);
    expect(noModel.err).toContain("--model builtin:tiny");
    const noFile = project.run(["train", "sl", "--dataset", "nope.jsonl", "--model", "builtin:tiny"]);
    expect(noFile.err).toContain("RL9009");
    const noNumber = project.run([
      "train",
      "sl",
      "--dataset",
      "traces.jsonl",
      "--model",
      "builtin:tiny",
      "--steps",
      "many",
    ]);
    expect(noNumber.err).toContain("RL9003");
    project.ok("train", "sl", "--dataset", "traces.jsonl", "--model", "builtin:tiny", "--dry-run");
  });
});

describe("serve and sample", () => {
  test("a server by hand: start, status, sample the base model by seed, stop", () => {
    const project = newProject({});
    project.ok("serve", "start", "--base-model", "builtin:tiny");
    expect(project.ok("serve", "status", "--base-model", "builtin:tiny")).toContain("running");
    const ask = () =>
      project.ok("sample", "--model", "builtin:tiny", "--prompt", "hi", "--max-tokens", "8", "--seed", "3", "--json");
    expect(ask()).toBe(ask());
    expect(project.ok("serve", "stop", "--base-model", "builtin:tiny")).toContain("has stopped");
    expect(project.run(["serve", "status", "--base-model", "builtin:tiny"]).code).toBe(1);
  });

  test("a model that is not there is said by the plan, not first by the apply", () => {
    const project = newProject();
    const plan = (model: string) =>
      project.run(["train", "sl", "--dataset", "traces.jsonl", "--model", model, "--dry-run"]);
    for (const [model, code] of [
      ["builtin:huge", "RL5001"],
      ["Qwen/Qwen3-4B", "RL9003"],
      ["./nowhere", "RL9003"],
    ] as const) {
      const { code: exit, err } = plan(model);
      expect(exit).toBe(1);
      expect(err).toContain(code);
    }
    const folder = new URL("../fixtures/tiny-qwen3", import.meta.url).pathname;
    mkdirSync(join(project.folder, "my models"));
    symlinkSync(folder, join(project.folder, "my models/tiny"));
    for (const model of ["my models/tiny", "./my models/tiny"]) expect(plan(model).code, model).toBe(0);
  });

  test("an unknown model is a diagnostic, not a stack trace", () => {
    const project = newProject({});
    const { code, err } = project.run(["serve", "start", "--base-model", "builtin:huge"]);
    expect(code).toBe(1);
    expect(err).toContain("builtin:tiny");
    expect(err).not.toMatch(/^\s+at /m);
  });
});
