/** `rlcli init`: what is asked, found, written, and never overwritten. That templates train is test/e2e/templates.test.ts. */
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { PassThrough } from "node:stream";
import { gzipSync } from "node:zlib";
import { afterAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { Questions, Unanswered } from "../../src/cli/ask.ts";
import { findLogs } from "../../src/cli/init/detect.ts";
import { chosenSpec } from "../../src/cli/init/spec-text.ts";
import { TEMPLATES } from "../../src/cli/init/templates.ts";

const root = new URL("../../", import.meta.url).pathname;
const program = join(root, "bin/rlcli.js");
const folder = mkdtempSync(join(tmpdir(), "rlcli-init-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function rlcli(...args: string[]) {
  const env = { ...process.env, NO_COLOR: "1", FORCE_COLOR: undefined } as NodeJS.ProcessEnv;
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    cwd: folder,
    env,
    encoding: "utf8",
  });
  return { code: status, out: stdout, err: stderr };
}

function put(name: string, text: string | Buffer): void {
  mkdirSync(dirname(join(folder, name)), { recursive: true });
  writeFileSync(join(folder, name), text);
}

const CHAT = {
  request: { messages: [{ role: "user", content: "hi" }] },
  response: { choices: [{ message: { role: "assistant", content: "hello" } }] },
};
const MESSAGES = {
  messages: [
    { role: "user", content: "hi" },
    { role: "assistant", content: "hello" },
  ],
};

describe("what is written", () => {
  test.each(TEMPLATES.map(({ name }) => name))("%s is valid and named for its folder", (name) => {
    const { code, out } = rlcli("init", `new/my ${name}`, "--template", name, "--json");
    expect(code).toBe(0);
    const { files, next, project } = JSON.parse(out);
    expect(project).toBe(`my-${name}`);
    expect(next.at(-1)).toBe("rlcli plan");
    for (const file of files) expect(existsSync(join(folder, "new", `my ${name}`, file))).toBe(true);
    expect(rlcli("-C", `new/my ${name}`, "validate")).toMatchObject({ code: 0 });
  });

  test("a folder that is named for a template holds that template", () => {
    const { code, out } = rlcli("init", "named/gsm8k-gspo");
    expect(code).toBe(0);
    expect(out).toContain("from the template gsm8k-gspo.");
    expect(existsSync(join(folder, "named/gsm8k-gspo/problems.jsonl"))).toBe(true);
    const other = rlcli("init", "other/gsm8k-gspo", "--template", "quickstart", "--json");
    expect(JSON.parse(other.out)).toMatchObject({ template: "quickstart" });
  });

  test.each(TEMPLATES.filter(({ full }) => full).map(({ name }) => name))("%s for a server with a GPU", (name) => {
    const args = ["--template", name, "--backend", "fsdp", "--model", "org/model", "--name", "big"];
    expect(rlcli("init", `full/${name}`, ...args).code).toBe(0);
    const spec = parse(readFileSync(join(folder, "full", name, "rlcli.yaml"), "utf8"));
    expect(spec).toMatchObject({ project: "big", server: { backend: "fsdp", model: "org/model" } });
    expect(rlcli("-C", `full/${name}`, "validate").code).toBe(0);
  });

  test("never over a file that is there", () => {
    put("taken/traces.jsonl", "mine");
    const { code, err } = rlcli("init", "taken");
    expect(code).toBe(1);
    expect(err).toContain("error[RL9004]");
    expect(err).toContain("rlcli init DIR");
    expect(readdirSync(join(folder, "taken"))).toEqual(["traces.jsonl"]);
    expect(readFileSync(join(folder, "taken/traces.jsonl"), "utf8")).toBe("mine");
  });

  test("odd names: a command that can be copied, and a project that is a name", () => {
    const odd = [
      ["Ünï côdé $(x) `y` 'z'-", "Uni-code-x-y-z"],
      [`q${"x".repeat(90)}`, `q${"x".repeat(62)}`],
      ["123", "quickstart"],
    ] as const;
    for (const [name, project] of odd) {
      const said = JSON.parse(rlcli("init", `odd/${name}`, "--json").out);
      expect(said.project).toBe(project);
      const { stdout } = spawnSync("sh", ["-c", `${said.next[0]} && pwd -P`], { cwd: folder, encoding: "utf8" });
      expect(stdout).toBe(`${realpathSync(join(folder, "odd", name))}\n`);
    }
  });

  test("all or nothing: what could not be written whole is not in the way of the next try", () => {
    // No file above 8 KiB, as on a full disk; the log of the template is larger.
    const limited = [
      "-c",
      'trap "" XFSZ; ulimit -f 8; exec "$@"',
      "sh",
      process.execPath,
      program,
      "init",
      "full-disk",
    ];
    const { status, stderr } = spawnSync("bash", limited, { cwd: folder, encoding: "utf8" });
    expect(stderr).toContain("RL9007");
    expect(status).toBe(1);
    expect(readdirSync(join(folder, "full-disk"))).toEqual([]);
    expect(rlcli("init", "full-disk").code).toBe(0);
  });

  test("a folder that cannot be made", () => {
    put("plain", "");
    expect(rlcli("init", "plain/x").err).toContain("error[RL9007]");
  });

  test.each<[string, string[], string]>([
    ["a template that is not there", ["--template", "quikstart"], "Did you mean `quickstart`?"],
    ["a name that a spec refuses", ["--name", "9 lives"], "A project's name is a letter"],
    ["logs where none are imported", ["--logs", "x.jsonl"], "imports no logs"],
    ["a large server for a first try", ["--backend", "fsdp"], "embedded server alone"],
  ])("%s", (_, args, words) => {
    const { code, err } = rlcli("init", "never", ...args);
    expect(code).toBe(1);
    expect(err.replace(/\s+/g, " ")).toContain(words);
    expect(existsSync(join(folder, "never"))).toBe(false);
  });
});

describe("what is found", () => {
  test("logs in a subfolder become a glob, with their format; the template's own log stays away", () => {
    for (const name of ["a", "b"]) put(`own/logs/${name}.jsonl`, `not json\n${JSON.stringify(CHAT)}\n`);
    put("own/package.json", "{}");
    const { out } = rlcli("init", "own", "--template", "sft-from-traces");
    expect(out).toContain("Found 2 files of openai logs: logs/*.jsonl.");
    const { datasets } = parse(readFileSync(join(folder, "own/rlcli.yaml"), "utf8"));
    expect(datasets.traces.import).toMatchObject({ format: "openai", from: "logs/*.jsonl" });
    expect(existsSync(join(folder, "own/traces.jsonl"))).toBe(false);
  });

  test("compressed files, arrays, and the format that most files have", () => {
    put("mixed/x.jsonl.gz", gzipSync(`${JSON.stringify(MESSAGES)}\n`.repeat(3)));
    put("mixed/sub/y.json", JSON.stringify([MESSAGES]));
    put("mixed/z.jsonl", `${JSON.stringify(CHAT)}\n`);
    put("mixed/node_modules/n.jsonl", `${JSON.stringify(CHAT)}\n`.repeat(2));
    expect(findLogs(join(folder, "mixed"))).toEqual({
      format: "messages",
      from: ["sub/y.json", "x.jsonl.gz"],
      files: 2,
    });
  });

  test("a glob only where it says the same", () => {
    put("part/in/a.jsonl", `${JSON.stringify(MESSAGES)}\n`);
    put("part/in/b.jsonl", `${JSON.stringify(MESSAGES)}\n`);
    put("part/in/c.jsonl", "{}\n");
    expect(findLogs(join(folder, "part"))?.from).toEqual(["in/a.jsonl", "in/b.jsonl"]);
    expect(findLogs(join(folder, "nowhere"))).toBeUndefined();
  });
});

test("a template's bytes stay but for what was chosen", () => {
  for (const { small, full } of TEMPLATES)
    for (const { spec } of full ? [small, full] : [small]) {
      const text = readFileSync(join(root, spec), "utf8");
      const server = { backend: "external", url: "http://h:1", model: "a/b" };
      const changed = chosenSpec(text, { project: "other", server });
      const before = parse(text, { merge: true });
      expect(parse(changed, { merge: true })).toEqual({ ...before, project: "other", server });
      const comments = (of: string) => of.split("\n").filter((line) => line.trim().startsWith("#"));
      expect(comments(changed)).toEqual(comments(text));
      expect(chosenSpec(text, { project: before.project })).toBe(text);
    }
});

describe("questions", () => {
  function asked(...answers: string[]) {
    const [stdin, stderr] = [new PassThrough(), new PassThrough()];
    let said = "";
    stderr.on("data", (chunk) => {
      said += chunk;
    });
    const questions = new Questions({ stdin, stderr });
    const type = (): void => {
      const answer = answers.shift();
      if (answer === undefined) stdin.end();
      else stdin.write(`${answer}\n`);
    };
    stderr.on("data", (chunk) => {
      if (/: $/.test(String(chunk))) setImmediate(type);
    });
    return { questions, said: () => said };
  }

  const CHOICES = [
    { value: "one", about: "the first" },
    { value: "two", about: "the second" },
  ];

  test.each([
    ["", "one"],
    ["2", "two"],
    ["two", "two"],
  ])("a choice by %j is %s", async (answer, value) => {
    const { questions, said } = asked(answer);
    expect(await questions.choice("Which one?", CHOICES)).toBe(value);
    expect(said()).toContain("  2  two  the second\n");
    questions.close();
  });

  test("a wrong answer is asked for again", async () => {
    const { questions, said } = asked("3", "maybe", "no");
    const answered = questions.yes("Sure?");
    expect(await answered).toBe(false);
    expect(said().match(/Type yes or no/g)).toHaveLength(2);
    questions.close();
  });

  test("an input that ends ends the questions", async () => {
    const { questions } = asked();
    await expect(questions.text("Name", "x", () => undefined)).rejects.toBeInstanceOf(Unanswered);
  });
});
