// What does a step of reinforcement learning cost the client? rlcli beside tinker-cookbook's rl_loop (benchmarks/client/rl_loop.py) on one
// real SkyRL server (jax on the CPU, a tiny model): the same tasks, prompts, answers, lengths, rank and loss (importance sampling, one
// update a step), in turns, for batches of several sizes. Wall time is a step as each loop reports it; client time is the processor time,
// user and system, of all of the client: of Python's process with its threads (time.process_time), of rlcli's worker (`time/client`)
// and, beside it, of the `apply` that follows it (/proc). The first steps compile, here and on the server, and are left out of both.
// Larger batches a CPU cannot sample in bearable time, so there, and once more at the small size to compare with, the server is a scripted one
// (test/support/policy-server.ts) that plays SkyRL's jax: the clients exchange the same messages with it, and only their processor
// time means something. Needs test/counterparts/setup and setup-skyrl, and Linux.
//
//   node benchmarks/client-skyrl.bench.mjs [--check] [--batch N]    --check fails where rlcli is slower on SkyRL, or needs more than 20 %
//                                                                   of the processor time. --batch measures only the N-th, from 0,
//                                                                   and leaves the others in the receipt as they are.
import { spawn } from "node:child_process";
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { median, writeReceipt } from "./receipt.mjs";
import { loadSources } from "./sources.mjs";

const MOST_SHARE = 0.2;
const RANK = 8;
/** `skipped` steps of `steps` are warm-up: V8 compiles what runs often, and goes on doing so for a hundred small steps. */
const SIZES = [
  { server: "skyrl", groups: 8, size: 16, maxTokens: 48, steps: 140, skipped: 100 },
  { server: "scripted", groups: 8, size: 16, maxTokens: 48, steps: 160, skipped: 120 },
  { server: "scripted", groups: 32, size: 16, maxTokens: 128, steps: 60, skipped: 40 },
  { server: "scripted", groups: 32, size: 16, maxTokens: 256, steps: 40, skipped: 25 },
];
/** About every second answer of a random model has it. */
const PATTERN = "[a-m]$";
const RATE = 1e-5;
const questionsFor = ({ groups, steps }) =>
  Array.from({ length: groups * steps }, (_, i) => `Say something about ${100 + i}.`);

const path = (name) => fileURLToPath(new URL(name, import.meta.url));
const { hasSkyrl, startSkyrl, cookbookPython, startPolicyServer } = await loadSources([
  "test/counterparts/skyrl.ts",
  "test/counterparts/environment.ts",
  "test/support/policy-server.ts",
]);
if (!hasSkyrl || !cookbookPython)
  throw new Error("SkyRL or tinker-cookbook is not installed: see test/counterparts/setup");

const folder = mkdtempSync(join(tmpdir(), "rlcli-client-skyrl-"));
const model = join(folder, "model");
cpSync(path("../test/fixtures/tiny-qwen3"), model, { recursive: true });

/** Runs a program to its end; its output. `onTick` is called now and then with its process id. */
async function run(command, words, options, onTick = () => {}) {
  const child = spawn(command, words, { stdio: ["ignore", "pipe", "pipe"], ...options });
  let [stdout, stderr] = ["", ""];
  child.stdout.on("data", (bytes) => {
    stdout += bytes;
  });
  child.stderr.on("data", (bytes) => {
    stderr += bytes;
  });
  const ended = new Promise((resolve) => child.once("close", resolve));
  let isOver = false;
  ended.then(() => {
    isOver = true;
  });
  while (!isOver) {
    onTick(child.pid);
    await Promise.race([ended, sleep(200)]);
  }
  const code = await ended;
  if (code !== 0) throw new Error(`${words.slice(0, 3).join(" ")}: ${stdout.slice(-2000)}${stderr.slice(-4000)}`);
  return stdout;
}

async function cookbook(url, of) {
  const given = {
    base_url: url,
    model,
    renderer: "qwen3",
    questions: questionsFor(of),
    pattern: PATTERN,
    groups: of.groups,
    size: of.size,
    max_tokens: of.maxTokens,
    steps: of.steps,
    rank: RANK,
    learning_rate: RATE,
  };
  const env = { ...process.env, TINKER_API_KEY: "tml-benchmark", TINKER_TELEMETRY: "0", HF_HUB_OFFLINE: "1" };
  const file = join(folder, "given.json");
  writeFileSync(file, JSON.stringify(given));
  const out = await run(cookbookPython, [path("client/rl_loop.py"), file], { env, cwd: folder });
  return out
    .split("\n")
    .filter((line) => line.startsWith('{"step"'))
    .map((line) => JSON.parse(line));
}

const spec = (url, name, of) => `rlcli: 1
project: ${name}
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
    steps: ${of.steps}
    groups_per_batch: ${of.groups}
    group_size: ${of.size}
    substeps: 1
    minibatches: 1
    max_tokens: ${of.maxTokens}
    lora_rank: ${RANK}
    learning_rate: ${RATE}
    optimizer: { beta1: 0.9, beta2: 0.95, eps: 1e-8 }
    save_every: 0
`;

async function rlcli(url, of) {
  const project = mkdtempSync(join(folder, "project-"));
  const name = `client-skyrl-${project.slice(-6).toLowerCase()}`;
  writeFileSync(join(project, "rlcli.yaml"), spec(url, name, of));
  const tasks = questionsFor(of).map((question) => `${JSON.stringify({ question })}\n`);
  writeFileSync(join(project, "tasks.jsonl"), tasks.join(""));
  // What `apply` had used when the worker had done so many steps.
  const follower = new Map();
  await run(process.execPath, [path("../bin/rlcli.js"), "apply", "--auto-approve"], { cwd: project }, (pid) => {
    const used = processorSeconds(pid);
    if (used !== undefined) follower.set(metricsOf(project).length, used);
  });
  const steps = [...follower.keys()].filter((step) => step >= of.skipped).sort((a, b) => a - b);
  const [first, last] = [steps[0], steps.at(-1)];
  const following = (follower.get(last) - follower.get(first)) / (last - first);
  return metricsOf(project).map(({ step, seconds, tokens, values }) => ({
    step,
    seconds,
    client: values["time/client"] + following,
    worker: values["time/client"],
    reward: values["reward/mean"],
    answerTokens: values["answer/tokens"],
    tokens,
  }));
}

/** Lines of the run's metrics so far. */
function metricsOf(project) {
  const runs = join(project, ".rlcli/runs/agent");
  if (!existsSync(runs)) return [];
  const record = join(runs, readdirSync(runs)[0], "1/metrics.jsonl");
  if (!existsSync(record)) return [];
  const whole = readFileSync(record, "utf8").split("\n").slice(1, -1);
  return whole.map((line) => JSON.parse(line));
}

/** Of a process with all its threads: fields 14 and 15 of its stat, in hundredths of a second (proc(5)). */
function processorSeconds(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    const [user, system] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13);
    return (Number(user) + Number(system)) / 100;
  } catch {
    return undefined;
  }
}

const load = () => loadavg().map((value) => Number(value.toFixed(2)));
const round = (value, digits = 4) => Number(value.toFixed(digits));

function summary(steps) {
  const of = (name) => median(steps.map((step) => step[name]));
  return {
    steps: steps.length,
    seconds: round(of("seconds")),
    clientSeconds: round(of("client")),
    ...(steps[0].worker === undefined ? {} : { workerSeconds: round(of("worker")), tokens: of("tokens") }),
    reward: round(steps.reduce((sum, { reward }) => sum + reward, 0) / steps.length, 3),
    raw: steps.map(({ seconds, client }) => [round(seconds), round(client)]),
  };
}

/** Answers without a model, of full length; plays SkyRL's jax. */
async function startScripted() {
  const { url, server, stop } = await startPolicyServer({
    answer: () => "",
    prepare: (plays) => {
      plays.skyrl = "jax";
      plays.reduction = "mean of means";
    },
  });
  // Letters of the tiny model's vocabulary.
  const letter = () => 64 + Math.floor(26 * Math.random());
  server.script = (_prompt, _sample, { max_tokens: count }) => ({
    tokens: Array.from({ length: count }, letter),
    logprobs: Array.from({ length: count }, () => Math.fround(-8 * Math.random())),
    stop: "length",
  });
  // Tests look at what was asked; here it would be gigabytes.
  server.fault = () => {
    server.requests.length = 0;
    for (const id of server.futures.keys()) {
      if (server.futures.size <= 1000) break;
      server.futures.delete(id);
    }
    return undefined;
  };
  return { url, stop };
}

async function compare(url, of) {
  const before = load();
  const theirs = summary((await cookbook(url, of)).slice(of.skipped));
  const ours = summary((await rlcli(url, of)).slice(of.skipped));
  const result = {
    ...of,
    load: before,
    wallRatio: round(ours.seconds / theirs.seconds, 3),
    clientShare: round(ours.clientSeconds / theirs.clientSeconds, 3),
    rlcli: ours,
    cookbook: theirs,
  };
  console.log(
    `${of.server}, ${of.groups} groups of ${of.size}, ${of.maxTokens} tokens: a step ${ours.seconds} s, cookbook ${theirs.seconds} s (${result.wallRatio}x); client ${ours.clientSeconds} s beside ${theirs.clientSeconds} s (${round(100 * result.clientShare, 0)} %)`,
  );
  return result;
}

/** After each batch: all of them take long. */
const write = () =>
  writeReceipt("client-skyrl", {
    question:
      "What does a step of reinforcement learning cost the client, rlcli beside tinker-cookbook's rl_loop on one server?",
    setting: { rank: RANK, loss: "importance_sampling" },
    mostShare: MOST_SHARE,
    batches: results,
  });

const START = { scripted: startScripted, skyrl: () => startSkyrl(model) };
const only = process.argv.includes("--batch") ? Number(process.argv[process.argv.indexOf("--batch") + 1]) : undefined;
const receipt = new URL("results/client-skyrl.json", import.meta.url);
const results = only === undefined ? [] : JSON.parse(readFileSync(receipt, "utf8")).batches;
try {
  for (const [at, of] of SIZES.entries()) {
    if (only !== undefined && at !== only) continue;
    const server = await START[of.server]();
    try {
      results[at] = await compare(server.url, of);
    } finally {
      await server.stop();
    }
    write();
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
const isSlower = results.some(({ server, wallRatio }) => server === "skyrl" && wallRatio > 1);
const isCostly = results.some(({ clientShare }) => clientShare > MOST_SHARE);
if (process.argv.includes("--check") && (isSlower || isCostly)) process.exitCode = 1;
