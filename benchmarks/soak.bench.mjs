// Does the embedded server's memory stay flat over thousands of steps?
//
// A server process of its own, over HTTP, as clients use it: every step is a forward_backward of changing length and loss,
// an optim_step and a sample from fresh unnamed weights; every so often a checkpoint is saved and deleted, and a second
// model is made, trained and unloaded. The resident memory of the server's process is noted every 50 steps. After a warm-up
// in which shapes compile, the median of the last fifth may exceed that of the second fifth by no more than the limit
// (`--check` makes that the exit code).
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { median, writeReceipt } from "./receipt.mjs";

const rlcli = fileURLToPath(new URL("../bin/rlcli.js", import.meta.url));
const STEPS = Number(process.argv.find((word) => /^\d+$/.test(word)) ?? 2000);
const NOTE_EVERY = 50;
const MOST_GROWTH_MB = 64;
const LOSSES = ["cross_entropy", "importance_sampling", "ppo", "cispo", "dro", "gspo", "dppo"];
const LENGTHS = [20, 33, 60, 120];

const folder = mkdtempSync(join(tmpdir(), "rlcli-soak-"));
const run = (...words) => {
  const { status, stderr } = spawnSync(process.execPath, [rlcli, ...words], { cwd: folder, encoding: "utf8" });
  if (status !== 0) throw new Error(`rlcli ${words.join(" ")}: ${stderr}`);
};

/** The only runtime.json below the folder. */
function readRuntime() {
  const path = readdirSync(folder, { recursive: true }).find((name) => String(name).endsWith("runtime.json"));
  return JSON.parse(readFileSync(join(folder, String(path)), "utf8"));
}

function residentMegabytes(pid) {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))[1]) / 1024;
}

run("serve", "start", "--base-model", "builtin:tiny");
const runtime = readRuntime();

async function call(method, path, body) {
  const response = await fetch(`${runtime.url}/api/v1${path}`, {
    method,
    headers: { "X-API-Key": runtime.token, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text === "" ? undefined : JSON.parse(text);
}

async function submit(path, body) {
  const { request_id } = await call("POST", path, body);
  for (;;) {
    const result = await call("POST", "/retrieve_future", { request_id });
    if (result.error) throw new Error(`${path}: ${result.error}`);
    if (result.type !== "try_again") return result;
  }
}

const { session_id } = await call("POST", "/create_session", { tags: [], sdk_version: "soak" });
let models = 0;
const newModel = async (rank) => {
  const made = { session_id, model_seq_id: models++, base_model: "builtin:tiny", lora_config: { rank } };
  return (await submit("/create_model", made)).model_id;
};

function passBody(model_id, step) {
  const length = LENGTHS[step % LENGTHS.length];
  const floats = (valueAt) => ({ data: Array.from({ length }, (_, i) => valueAt(i)), dtype: "float32" });
  const datum = (row) => ({
    model_input: { chunks: [{ tokens: Array.from({ length }, (_, i) => (i * 7 + step + row) % 256) }] },
    loss_fn_inputs: {
      target_tokens: { data: Array.from({ length }, (_, i) => (i * 7 + step + row + 7) % 256), dtype: "int64" },
      logprobs: floats((i) => -5 - (i % 3) * 0.1),
      advantages: floats((i) => (i % 5) / 5 - 0.3),
    },
  });
  const loss_fn = LOSSES[step % LOSSES.length];
  return { model_id, forward_backward_input: { data: [datum(0), datum(1), datum(2), datum(3)], loss_fn } };
}

const adam_params = { learning_rate: 1e-4, grad_clip_norm: 1 };
const prompt = { chunks: [{ tokens: [104, 101, 108, 108, 111] }] };
const model = await newModel(8);
const notes = [];
const started = performance.now();
for (let step = 0; step < STEPS; step++) {
  await submit("/forward_backward", passBody(model, step));
  await submit("/optim_step", { model_id: model, adam_params });
  const saved = { model_id: model, sampling_session_seq_id: step };
  const { sampling_session_id } = await submit("/save_weights_for_sampler", saved);
  const sampling_params = { max_tokens: 16, seed: step };
  await submit("/asample", { sampling_session_id, seq_id: 0, prompt, num_samples: 4, sampling_params });
  if (step % 25 === 0) {
    const name = `step-${step}`;
    await submit("/save_weights", { model_id: model, path: name });
    await call("DELETE", `/training_runs/${encodeURIComponent(model)}/checkpoints/weights/${name}`);
    const other = await newModel(4);
    await submit("/forward_backward", passBody(other, step));
    await submit("/optim_step", { model_id: other, adam_params });
    await submit("/unload_model", { model_id: other });
  }
  if (step % NOTE_EVERY === NOTE_EVERY - 1) {
    await call("POST", "/session_heartbeat", { session_id });
    notes.push(Math.round(residentMegabytes(runtime.process.pid)));
    process.stderr.write(`\r${step + 1} steps, ${notes.at(-1)} MB `);
  }
}
const seconds = (performance.now() - started) / 1000;
process.stderr.write("\n");
run("serve", "stop", "--base-model", "builtin:tiny", "--force");
rmSync(folder, { recursive: true, force: true });

const fifth = Math.max(1, Math.floor(notes.length / 5));
const early = median(notes.slice(fifth, 2 * fifth));
const late = median(notes.slice(-fifth));
const growthMb = late - early;
await writeReceipt("soak", {
  question: "resident memory of the embedded server's process in MB, every 50 steps",
  steps: STEPS,
  models: models,
  secondsPerStep: Number((seconds / STEPS).toFixed(4)),
  residentMb: notes,
  medianOfSecondFifthMb: early,
  medianOfLastFifthMb: late,
  growthMb,
  mostGrowthMb: MOST_GROWTH_MB,
});
console.log(`${STEPS} steps: ${early} MB early, ${late} MB late (${growthMb >= 0 ? "+" : ""}${growthMb})`);
if (process.argv.includes("--check") && growthMb > MOST_GROWTH_MB) process.exitCode = 1;
