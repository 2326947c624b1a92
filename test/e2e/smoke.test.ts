// `apply --smoke`: everything small, nothing kept, and what is wrong is found.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { TestProject } from "./project.ts";

const ROWS = Array.from({ length: 30 }, (_, i) => {
  const messages = [
    { role: "user", content: `${i}+1=` },
    { role: "assistant", content: `${i + 1}` },
  ];
  return `${JSON.stringify({ messages })}\n`;
}).join("");
const TASKS = Array.from({ length: 30 }, (_, i) => `${JSON.stringify({ q: `${i}+1=`, a: `${i + 1}` })}\n`).join("");

const SPEC = `rlcli: 1
project: test
servers:
  gpu: { backend: fsdp, model: Qwen/Qwen3-4B-Instruct-2507, gpus: 8, tensor_parallel: 2 }
datasets:
  rows: { source: rows.jsonl }
  sums: { source: tasks.jsonl }
environments:
  sums: { type: match, dataset: sums, question: q, answer: a }
runs:
  warmup: { type: sl, dataset: rows, epochs: 20, batch_size: 16, learning_rate: 1e-3, lora_rank: 32, test_size: 4, schedule: cosine }
  agent:
    type: rl
    from: warmup@best
    environment: sums
    loss: gspo
    steps: 500
    group_size: 64
    substeps: 4
    kl_penalty: 0
    lora_rank: 32
evals:
  held: { checkpoint: agent@400, environment: sums, samples: 16, every: 50, metrics: { reward: { min: 0.9 } } }
deployments:
  production: { checkpoint: agent@400, requires: held }
`;

const projects: TestProject[] = [];
function projectOf(spec: string, files: Readonly<Record<string, string>> = {}): TestProject {
  const project = new TestProject({ "rlcli.yaml": spec, "rows.jsonl": ROWS, "tasks.jsonl": TASKS, ...files });
  projects.push(project);
  return project;
}
afterEach(async () => {
  for (const project of projects.splice(0)) await project.close();
});

const MODEL = "model: builtin:tiny";
const local = SPEC.replace("model: Qwen/Qwen3-4B-Instruct-2507", MODEL);

test("tries every block for two steps and leaves nothing behind", async () => {
  const project = projectOf(local.replace("backend: fsdp", "backend: fsdp"));
  const { code, out, err } = await project.run(["apply", "--smoke"]);
  expect(err + out).toContain("✓ deployment.production");
  expect(out).toContain("Everything was tried out.");
  expect(code).toBe(0);
  expect(existsSync(join(project.folder, ".rlcli", "state"))).toBe(false);
  expect(existsSync(join(project.folder, ".rlcli", "runs"))).toBe(false);
});

test("says what could not be tried, and that it is incomplete", async () => {
  const spec = SPEC.replace("sums: { source: tasks.jsonl }", "sums: { source: hf://openai/gsm8k/main/train }");
  const { code, out } = await projectOf(spec).run(["apply", "--smoke"]);
  expect(code).toBe(3);
  expect(out).toContain("dataset.sums: hf://openai/gsm8k/main/train is not in the cache");
  expect(out).toContain("run.agent: it needs one of these");
  expect(out).toContain("tokenizer of Qwen/Qwen3-4B-Instruct-2507: the model is not a folder on this machine");
});

test("finds a grader that throws", async () => {
  const spec = local
    .replace("{ type: match,", "{ type: module, module: grade.js, retries: 0,")
    .replace(", answer: a", "");
  const project = projectOf(spec, { "grade.js": "export const grade = () => { throw new Error('no such key'); };" });
  const { code, err } = await project.run(["apply", "--smoke"]);
  expect(code).toBe(1);
  expect(err).toContain("RL8101");
  expect(err).toContain("no such key");
});

test("finds a field that the tasks do not have", async () => {
  const { code, err } = await projectOf(local.replace("question: q", "question: prompt")).run(["apply", "--smoke"]);
  expect(code).toBe(1);
  expect(err).toMatch(/RL7101[\s\S]*the field `prompt`, which `question` of/);
});
