/** A field that the rows do not have is told by the plan where the rows are here; hub.test.ts has those that come later. */
import { afterEach, expect, test } from "vitest";
import { TestProject } from "./project.ts";

const SPEC = `rlcli: 1
project: test
server: { backend: embedded, model: builtin:tiny }
datasets:
  sums: { source: sums.jsonl }
environments:
  sums: { type: match, mode: contains, dataset: sums, question: question, answer: answer }
runs:
  agent: { type: rl, environment: sums, loss: gspo, steps: 1, group_size: 2, groups_per_batch: 2, max_tokens: 2 }
`;

const lines = (...rows: readonly object[]) => rows.map((row) => `${JSON.stringify(row)}\n`).join("");
const GOOD = { question: "1+1=", answer: 2 };

let project: TestProject | undefined;
afterEach(() => project?.close());

function planned(files: Readonly<Record<string, string>>, edit?: readonly [string, string]) {
  project = new TestProject({ "rlcli.yaml": SPEC, ...files });
  if (edit) project.edit("rlcli.yaml", ...edit);
  const { code, err } = project.run(["plan"]);
  return { code, err: err.replaceAll(/\s+/g, " ") };
}

test("a misspelt field is an error at the place that names it, with what the rows have", () => {
  const { code, err } = planned({ "sums.jsonl": lines(GOOD, GOOD) }, ["answer: answer", "answer: anwser"]);
  expect(code).toBe(1);
  expect(err).toContain("error[RL7101]");
  expect(err).toContain("rlcli.yaml:7:83 (environment.sums)");
  expect(err).toContain("No row of dataset.sums has text in the field `anwser`");
  expect(err).toContain("The rows have question, answer. Did you mean `answer`?");
});

test.each([
  ["a table", "sums.csv", "question,result\n1+1=,2\n", "The rows have question, result."],
  ["rows with questions of another name", "sums.jsonl", lines({ prompt: "1+1=", answer: "2" }), "`question`"],
])("also of %s", (_, name, text, words) => {
  const { code, err } = planned({ [name]: text }, ["sums.jsonl", name]);
  expect([code, err]).toEqual([1, expect.stringContaining(words)]);
});

test("a grader's part names its own place", () => {
  const parts = "answer: answer, parts: [{ type: math, answer: value }] }";
  const { code, err } = planned({ "sums.jsonl": lines(GOOD) }, ["answer: answer }", parts]);
  expect([code, err]).toEqual([1, expect.stringContaining("`answer` of environment.sums names")]);
  expect(err).toContain("in the field `value`");
});

test("rows of which some lack it are a warning, with the first of them", () => {
  const { code, err } = planned({ "sums.jsonl": lines(GOOD, { question: "2+2=" }, GOOD) });
  expect(code).toBe(0);
  expect(err).toContain("warning[RL7101]");
  expect(err).toContain("1 of the first 3 rows of dataset.sums have no text in the field `answer`");
  expect(err).toContain("row 2 is the first");
});

test.each([
  [
    "conversations as questions, and an answer that is false",
    lines({ question: [{ role: "user", content: "x" }], answer: false }),
  ],
  ["damaged lines, which are the import's to tell", `{\n${lines(GOOD)}`],
])("nothing is said of %s", (_, text) => {
  const { code, err } = planned({ "sums.jsonl": text });
  expect([code, err]).toEqual([0, expect.not.stringContaining("RL7101")]);
});
