// What does a step of reinforcement learning cost the client? rlcli beside tinker-cookbook's rl_loop (benchmarks/client/rl_loop.py) on one
// real SkyRL server (jax on the CPU, a tiny model): the same tasks, prompts, answers, lengths, rank and loss (importance sampling, one
// update a step), in turns. Wall time is a step as each loop reports it; client time is the processor time of the client's process
// with all its threads (`time/client` of rlcli's worker, time.process_time of Python). The first steps compile on the server and are
// left out. Needs test/counterparts/setup and setup-skyrl.
//
//   node benchmarks/client-skyrl.bench.mjs [--check]    fails where rlcli is slower, or needs more than 20 % of the processor time
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { median, writeReceipt } from "./receipt.mjs";
import { loadSources } from "./sources.mjs";

const MOST_SHARE = 0.2;
const [ROUNDS, STEPS, SKIPPED] = [2, 12, 4];
const [GROUPS, SIZE, MAX_TOKENS, RANK] = [8, 16, 48, 8];
/** About every second answer of a random model has it. */
const PATTERN = "[a-m]$";
const RATE = 1e-5;
const QUESTIONS = Array.from({ length: GROUPS * STEPS }, (_, i) => `Say something about ${100 + i}.`);

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const { hasSkyrl, startSkyrl, cookbookPython } = await loadSources([
  "test/counterparts/skyrl.ts",
  "test/counterparts/environment.ts",
]);
if (!hasSkyrl || !cookbookPython)
  throw new Error("SkyRL or tinker-cookbook is not installed: see test/counterparts/setup");

const folder = mkdtempSync(join(tmpdir(), "rlcli-client-skyrl-"));
const model = join(folder, "model");
cpSync(path("../test/fixtures/tiny-qwen3"), model, { recursive: true });

function run(command, words, options) {
  const { status, stdout, stderr } = spawnSync(command, words, { encoding: "utf8", maxBuffer: 1 << 28, ...options });
  if (status !== 0) throw new Error(`${words.slice(0, 3).join(" ")}: ${stdout.slice(-2000)}${stderr.slice(-4000)}`);
  return stdout;
}

function cookbook(url) {
  const given = {
    base_url: url,
    model,
    renderer: "qwen3",
    questions: QUESTIONS,
    pattern: PATTERN,
    groups: GROUPS,
    size: SIZE,
    max_tokens: MAX_TOKENS,
    steps: STEPS,
    rank: RANK,
    learning_rate: RATE,
  };
  const env = { ...process.env, TINKER_API_KEY: "tml-benchmark", TINKER_TELEMETRY: "0", HF_HUB_OFFLINE: "1" };
  const out = run(cookbookPython, [path("client/rl_loop.py"), JSON.stringify(given)], {
    env,
    cwd: folder,
  });
  return out
    .split("\n")
    .filter((line) => line.startsWith('{"step"'))
    .map((line) => JSON.parse(line));
}

const spec = (url, round) => `rlcli: 1
project: client-skyrl-${round}
server: { backend: external, url: "${url}", model: ${JSON.stringify(model)} }
datasets:
  tasks: { source: tasks.jsonl }
environments:
  letters: { type: match, dataset: tasks, mode: regex, pattern: "${PATTERN}" }
runs:
  agent:
    type: rl
    environment: letters
    loss: importance_sampling
    steps: ${STEPS}
    groups_per_batch: ${GROUPS}
    group_size: ${SIZE}
    substeps: 1
    minibatches: 1
    max_tokens: ${MAX_TOKENS}
    lora_rank: ${RANK}
    learning_rate: ${RATE}
    optimizer: { beta1: 0.9, beta2: 0.95, eps: 1e-8 }
    save_every: 0
`;

function rlcli(url, round) {
  const project = mkdtempSync(join(folder, "project-"));
  writeFileSync(join(project, "rlcli.yaml"), spec(url, round));
  writeFileSync(
    join(project, "tasks.jsonl"),
    QUESTIONS.map((question) => `${JSON.stringify({ question })}\n`).join(""),
  );
  run(process.execPath, [path("../bin/rlcli.js"), "apply", "--auto-approve"], { cwd: project });
  const runs = join(project, ".rlcli/runs/agent");
  const record = join(runs, readdirSync(runs)[0], "1");
  const lines = readFileSync(join(record, "metrics.jsonl"), "utf8").trim().split("\n").slice(1);
  return lines.map((line) => {
    const { step, seconds, values } = JSON.parse(line);
    return {
      step,
      seconds,
      client: values["time/client"],
      reward: values["reward/mean"],
      answerTokens: values["answer/tokens"],
      promptTokens: values["prompt/tokens"],
    };
  });
}

const load = loadavg().map((value) => Number(value.toFixed(2)));
const measured = { rlcli: [], cookbook: [] };
const server = await startSkyrl(model);
try {
  for (let round = 0; round < ROUNDS; round++) {
    measured.cookbook.push(...cookbook(server.url).slice(SKIPPED));
    measured.rlcli.push(...rlcli(server.url, round).slice(SKIPPED));
  }
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

const summary = (steps) => ({
  steps: steps.length,
  seconds: Number(median(steps.map(({ seconds }) => seconds)).toFixed(4)),
  clientSeconds: Number(median(steps.map(({ client }) => client)).toFixed(4)),
  reward: Number((steps.reduce((sum, { reward }) => sum + reward, 0) / steps.length).toFixed(3)),
  raw: steps,
});
const [ours, theirs] = [summary(measured.rlcli), summary(measured.cookbook)];
const wall = Number((ours.seconds / theirs.seconds).toFixed(3));
const share = Number((ours.clientSeconds / theirs.clientSeconds).toFixed(3));
writeReceipt("client-skyrl", {
  question:
    "What does a step of reinforcement learning cost the client, rlcli beside tinker-cookbook's rl_loop on one SkyRL server?",
  setting: { groups: GROUPS, groupSize: SIZE, maxTokens: MAX_TOKENS, rank: RANK, loss: "importance_sampling" },
  load,
  wallRatio: wall,
  clientShare: share,
  mostShare: MOST_SHARE,
  rlcli: ours,
  cookbook: theirs,
});
console.log(
  `a step: rlcli ${ours.seconds} s, cookbook ${theirs.seconds} s (${wall}x); client ${ours.clientSeconds} s beside ${theirs.clientSeconds} s (${(100 * share).toFixed(0)} %)`,
);
if (process.argv.includes("--check") && (wall > 1 || share > MOST_SHARE)) process.exitCode = 1;
