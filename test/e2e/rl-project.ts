/** A small project of reinforcement learning: a grader that tells the answers of an untrained model apart. */
import { TestProject } from "./project.ts";

const SPEC = `rlcli: 1
project: test
server: { backend: embedded, model: builtin:tiny }
datasets:
  sums: { source: sums.jsonl }
environments:
  sums: { type: module, dataset: sums, module: grade.mjs, tag: kind }
runs:
  agent:
    type: rl
    environment: sums
    loss: gspo
    steps: 4
    group_size: 4
    groups_per_batch: 2
    max_tokens: 4
    learning_rate: 1e-3
    save_every: 1
evals:
  held: { checkpoint: agent, environment: sums, tasks: 4, max_tokens: 4, every: 2, metrics: { reward: { min: -1 } } }
deployments:
  live: { checkpoint: agent, requires: [held] }
`;

/** More the more different characters the answer has, so that hardly two answers of a group are worth the same. */
export const GRADER = `export function grade({ completion }) {
  const codes = [...completion].map((char) => char.codePointAt(0) % 97);
  return { reward: codes.reduce((sum, code) => sum + code, 0) / 400, metrics: { characters: codes.length } };
}
`;

const TASKS = Array.from(
  { length: 8 },
  (_, i) => `${JSON.stringify({ question: `${i}+1=`, answer: `${i + 1}`, kind: i % 2 ? "odd" : "even" })}\n`,
).join("");

export function rlProject(): TestProject {
  return new TestProject({ "rlcli.yaml": SPEC, "grade.mjs": GRADER, "sums.jsonl": TASKS });
}
