// What share of a step of reinforcement learning is rlcli's own time? A run on the embedded server with builtin:tiny, through the
// program: 16 tasks with 8 answers of up to 64 tokens each, graded in the process, two updates a step. Own time is the processor
// time of the run's worker (`time/client` of each step): sampling, training and waiting happen in the server's process. The first
// two steps compile on both sides and are left out.
//
//   node benchmarks/client.bench.mjs [--check]    fails above 5 %
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeReceipt } from "./receipt.mjs";

const MOST_SHARE = 0.05;
const STEPS = 14;
const SKIPPED = 2;
const rlcli = fileURLToPath(new URL("../bin/rlcli.js", import.meta.url));

const SPEC = `rlcli: 1
project: client-bench
server: { backend: embedded, model: builtin:tiny }
datasets:
  tasks: { source: tasks.jsonl }
environments:
  letters: { type: match, dataset: tasks, mode: regex, pattern: "[aeiou].*[aeiou]" }
runs:
  agent:
    type: rl
    environment: letters
    loss: gspo
    steps: ${STEPS}
    groups_per_batch: 16
    group_size: 8
    substeps: 2
    max_tokens: 64
    save_every: 0
`;

const folder = mkdtempSync(join(tmpdir(), "rlcli-client-"));
const run = (...words) => {
  const { status, stderr } = spawnSync(process.execPath, [rlcli, ...words], { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`rlcli ${words.join(" ")}: ${stderr}`);
};
const load = loadavg().map((value) => Number(value.toFixed(2)));
try {
  writeFileSync(join(folder, "rlcli.yaml"), SPEC);
  const tasks = Array.from({ length: 64 }, (_, i) => `${JSON.stringify({ question: `Say something about ${i}.` })}\n`);
  writeFileSync(join(folder, "tasks.jsonl"), tasks.join(""));
  run("apply", "--auto-approve");
  const runs = join(folder, ".rlcli/runs/agent");
  const file = join(runs, readdirSync(runs)[0], "1/metrics.jsonl");
  const lines = readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .slice(1 + SKIPPED);
  const steps = lines.map((line) => {
    const { step, seconds, values } = JSON.parse(line);
    return {
      step,
      seconds,
      client: values["time/client"],
      answers: values["rollouts/graded"],
      tokens: values["answer/tokens"],
    };
  });
  run("serve", "stop", "--force");
  const sum = (key) => steps.reduce((total, step) => total + step[key], 0);
  const share = Number((sum("client") / sum("seconds")).toFixed(4));
  writeReceipt("client", {
    question: "Which share of a step of reinforcement learning is rlcli's own processor time, on the embedded server?",
    mostShare: MOST_SHARE,
    share,
    load,
    steps,
  });
  console.log(`${(100 * share).toFixed(1)} % of ${sum("seconds").toFixed(1)} s`);
  if (process.argv.includes("--check") && share > MOST_SHARE) process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
