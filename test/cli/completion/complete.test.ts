/** What completion offers, from the grammar and from a spec; that shells take it is shells.test.ts. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { complete, specFilesOf } from "../../../src/cli/completion/complete.ts";
import { namesOf } from "../../../src/cli/completion/names.ts";
import { topicsFor } from "../../../src/cli/completion/topics.ts";
import { createProgram } from "../../../src/cli/program.ts";
import { allCommands } from "../../../src/cli/teach.ts";

const program = createProgram(async () => {});
const folder = mkdtempSync(join(tmpdir(), "rlcli-complete-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The words of a line; one that ends in a space begins another word. */
const at = (line: string) => complete(program, line.split(" "));
const valuesAt = (line: string): string[] => {
  const { candidates, typed } = at(line);
  return candidates.map(({ value }) => value).filter((value) => value.startsWith(typed));
};

describe("the grammar", () => {
  test("commands, and those of a group; what only scripts call is not offered", () => {
    expect(valuesAt("pl")).toEqual(["plan"]);
    expect(valuesAt("")).not.toContain("__complete");
    expect(valuesAt("serve st")).toEqual(["start", "stop", "status"]);
    expect(valuesAt("help serve sto")).toEqual(["stop"]);
    expect(complete(program, ["help", "ad"])).toMatchObject({ wanted: "topic" });
    expect(complete(program, ["ad"])).toMatchObject({ wanted: "nothing" });
  });

  test("options of the command and of the program, each once unless it may be repeated", () => {
    expect(valuesAt("plan --d")).toEqual(["--destroy", "--detailed-exitcode"]);
    expect(valuesAt("plan --destroy --d")).toEqual(["--detailed-exitcode"]);
    expect(valuesAt("plan --target run.a --ta")).toEqual(["--target"]);
    expect(valuesAt("plan --js")).toEqual(["--json"]);
    expect(valuesAt("plan -- --js")).toEqual([]);
  });

  test("values of options, apart or with an equals sign", () => {
    expect(valuesAt("train rl --loss g")).toEqual(["gspo"]);
    expect(at("train rl --loss=g")).toMatchObject({ prefix: "--loss=", typed: "g" });
    expect(valuesAt("train rl --loss=g")).toEqual(["gspo"]);
  });

  test.each([
    ["logs ", "run"],
    ["logs agent ", "nothing"],
    ["rollouts ", "run"],
    ["eval a ", "eval"],
    ["show ", "address"],
    ["output ", "address"],
    ["serve logs ", "server"],
    ["rollback ", "deployment"],
    ["plan --target ", "address"],
    ["plan --var ", "variable"],
    ["plan -f ", "file"],
    ["logs -f ", "run"],
    ["apply ", "file"],
    ["env list ", "folder"],
    ["explain ", "topic"],
    ["-C ", "folder"],
    ["-C sub logs ", "run"],
    ["plan --bogus ", "nothing"],
  ])("%j wants a %s", (line, wanted) => {
    expect(at(line).wanted).toBe(wanted);
  });

  test("every option with choices completes them", () => {
    for (const command of allCommands(program))
      for (const option of command.options.filter(({ argChoices }) => argChoices)) {
        const words: string[] = [option.long ?? "", ""];
        for (let up = command; up.parent; up = up.parent) words.unshift(up.name());
        expect(complete(program, words).candidates.map(({ value }) => value)).toEqual(option.argChoices);
      }
  });
});

describe("names of a spec", () => {
  const put = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return name;
  };
  const values = (kind: Parameters<typeof namesOf>[0], ...files: string[]) =>
    namesOf(kind, files, folder).map(({ value }) => value);

  const base = put(
    "rlcli.yaml",
    "rlcli: 1\nvariables: { steps: { type: integer } }\nserver: { backend: embedded }\nruns:\n  a: { type: sl }\n  b:\n    type: rl\nevals: { e: {} }\ndeployments: { d: {} }\n",
  );

  test("by kind, as addresses, as what can be sampled", () => {
    expect(values("run", base)).toEqual(["a", "b"]);
    expect(values("server", base)).toEqual(["default"]);
    expect(values("variable", base)).toEqual(["steps="]);
    expect(values("address", base)).toEqual(["server.default", "run.a", "run.b", "eval.e", "deployment.d"]);
    expect(values("weights", base)).toEqual(["a", "b", "deployment.d", "base"]);
  });

  test("overlays add theirs", () => {
    expect(values("run", base, put("more.yaml", "runs: { c: { type: sl } }"))).toEqual(["a", "b", "c"]);
    expect(specFilesOf(program, ["plan", "-f", "x.yaml", "--file=y.yaml", "--target", ""])).toEqual([
      "x.yaml",
      "y.yaml",
    ]);
    expect(specFilesOf(program, ["logs", "-f", ""])).toEqual([]);
  });

  test("also of a spec that does not load, and none of what is no spec", () => {
    expect(values("run", put("broken.yaml", "runs:\n  good: {}\n  bad: [\n"))).toContain("good");
    expect(values("run", "nowhere.yaml")).toEqual([]);
    expect(values("run", put("list.yaml", "- 1\n"))).toEqual([]);
  });

  test("topics of explain: fields of a block that was begun, codes once begun, metrics", () => {
    const topics = (typed: string) => topicsFor(typed).map(({ value }) => value);
    expect(topics("")).not.toContain("run.steps");
    expect(topics("run.")).toContain("run.learning_rate");
    expect(topics("RL")).toContain("RL1203");
    expect(topics("k")).toContain("kl/k3");
  });
});
