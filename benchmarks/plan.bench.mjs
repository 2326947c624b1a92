// `rlcli plan` where nothing is left to do, at 1,000 and 10,000 resources: whole process, from YAML to "No changes". The state and the
// run records are written as apply and the workers would have left them; nothing is trained. Not measured: servers that must be asked.
// node benchmarks/plan.bench.mjs [--runs N]
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { median, writeReceipt } from "./receipt.mjs";

const program = fileURLToPath(new URL("../bin/rlcli.js", import.meta.url));
const runs = Number(process.argv[process.argv.indexOf("--runs") + 1]) || 5;
const SIZES = [1000, 10_000];
const LIMITS = { 1000: 0.5, 10000: 4 };

/** One server, a tenth datasets, the rest runs, a third of which start from another run. */
function writeSpec(folder, size) {
  const datasets = Math.floor(size / 10);
  const lines = [
    "rlcli: 1",
    "project: bench",
    "server: { backend: embedded, model: builtin:tiny, slots: 64 }",
    "datasets:",
  ];
  for (let at = 0; at < datasets; at++) {
    writeFileSync(
      join(folder, `d${at}.jsonl`),
      `{"messages":[{"role":"user","content":"${at}"},{"role":"assistant","content":"yes"}]}\n`,
    );
    lines.push(`  d${at}: { source: d${at}.jsonl }`);
  }
  lines.push("runs:");
  for (let at = 0; at < size - datasets - 1; at++) {
    const from = at % 3 === 2 ? `, from: r${at - 1}` : "";
    lines.push(`  r${at}: { type: sl, dataset: d${at % datasets}, steps: 10, seed: ${at}${from} }`);
  }
  writeFileSync(join(folder, "rlcli.yaml"), `${lines.join("\n")}\n`);
}

function plan(folder, ...args) {
  return execFileSync(process.execPath, [program, "plan", "--json", ...args], { cwd: folder, maxBuffer: 1 << 30 });
}

/** Writes what apply would have left of a plan: records, imported rows, run records and checkpoints. */
function pretendApplied(folder) {
  const { changes } = JSON.parse(plan(folder));
  const data = join(folder, ".rlcli");
  const at = new Date().toISOString();
  mkdirSync(join(data, "state/records"), { recursive: true });
  const digests = new Map();
  for (const { address, kind, attributes, after, dependsOn } of changes) {
    const name = address.slice(address.indexOf(".") + 1);
    const short = after.hash.slice(7, 19);
    const results = {};
    if (kind === "dataset") {
      digests.set(address, after.hash);
      mkdirSync(join(data, "datasets", short), { recursive: true });
      writeFileSync(join(data, "datasets", short, "manifest.json"), "{}");
    }
    if (kind === "run") {
      const training = `tinker://session_bench:train:0/weights/${name}-10`;
      const sampler = training.replace("/weights/", "/sampler_weights/");
      Object.assign(results, {
        step: 10,
        semantics: 1,
        dataset: attributes.find((a) => a.path === "dataset.content").after,
        training,
        sampler,
      });
      writeRun(data, name, short, { address, generation: after.hash, training, sampler, at });
      for (const kind of ["weights", "sampler_weights"]) {
        const checkpoint = join(data, "servers/default/checkpoints/session_bench_train_0", kind, `${name}-10`);
        mkdirSync(checkpoint, { recursive: true });
        writeFileSync(join(checkpoint, "checkpoint.json"), JSON.stringify({ formatVersion: 1, expiresAt: null }));
      }
    }
    const value = {
      formatVersion: 1,
      address,
      version: 1,
      status: "ready",
      hash: after.hash,
      incarnation: after.incarnation,
      attributes: Object.fromEntries(attributes.map((a) => [a.path, a.after])),
      dependsOn,
      results,
      updatedAt: at,
      fence: 1,
    };
    writeFileSync(join(data, "state/records", `${address}@1.json`), JSON.stringify({ write: "bench", value }));
  }
}

function writeRun(data, name, short, { address, generation, training, sampler, at }) {
  const folder = join(data, "runs", name, short, "1");
  mkdirSync(folder, { recursive: true });
  const lines = (...values) => [{ formatVersion: 1 }, ...values].map((value) => `${JSON.stringify(value)}\n`).join("");
  const order = {
    formatVersion: 1,
    project: "bench",
    address,
    generation,
    incarnation: 1,
    server: "server.default",
    settings: {},
    length: { steps: 10 },
  };
  writeFileSync(join(folder, "spec.json"), JSON.stringify(order));
  const steps = Array.from({ length: 10 }, (_, step) => [
    { t: "step", at, step: step + 1, seq: [2 * step + 1, 2 * step + 2], batch: generation, learningRate: 1e-4 },
    { t: "done", at, step: step + 1 },
  ]).flat();
  const open = { t: "open", at, session: "session_bench", model: "m", serverRun: "x", step: 0 };
  const saved = [
    { t: "save", at, step: 10, name: "n", seq: [21] },
    { t: "saved", at, step: 10 },
  ];
  writeFileSync(
    join(folder, "journal.jsonl"),
    lines(open, ...steps, ...saved, { t: "end", at, status: "complete", step: 10 }),
  );
  writeFileSync(
    join(folder, "checkpoints.jsonl"),
    lines({ t: "checkpoint", at, step: 10, training, sampler, final: { steps: 10 } }),
  );
  const metric = {
    step: 10,
    at,
    epoch: 10,
    learningRate: 1e-4,
    loss: 1,
    tokens: 100,
    trainedTokens: 50,
    rows: 1,
    seconds: 0.1,
    tokensPerSecond: 1000,
  };
  writeFileSync(join(folder, "metrics.jsonl"), lines(metric));
  const worker = {
    formatVersion: 1,
    process: { pid: 1, startTime: "0" },
    leaseToken: 1,
    startedAt: at,
    end: { status: "complete", step: 10 },
    rate: { secondsPerStep: 0.1, tokensPerStep: 100, stepsPerEpoch: 1 },
  };
  writeFileSync(join(folder, "worker.json"), JSON.stringify(worker));
}

const results = [];
for (const size of SIZES) {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-bench-plan-"));
  try {
    writeSpec(folder, size);
    pretendApplied(folder);
    const seconds = [];
    for (let run = 0; run <= runs; run++) {
      const started = performance.now();
      const { status, stdout, stderr } = spawnSync(process.execPath, [program, "plan", "--detailed-exitcode"], {
        cwd: folder,
        encoding: "utf8",
      });
      if (status !== 0)
        throw new Error(
          `the plan of ${size} resources is not empty: exit ${status}\n${stdout.slice(0, 2000)}${stderr.slice(0, 2000)}`,
        );
      // The first run fills the digest cache.
      if (run > 0) seconds.push((performance.now() - started) / 1000);
    }
    const result = { resources: size, seconds, median: median(seconds), limit: LIMITS[size] };
    process.stdout.write(`${size} resources: ${result.median.toFixed(2)} s (limit ${result.limit} s)\n`);
    results.push(result);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
const bare = Array.from({ length: runs }, () => {
  const started = performance.now();
  spawnSync(process.execPath, ["-e", "0"]);
  return (performance.now() - started) / 1000;
});
process.stdout.write(`(on this machine now, node -e 0 takes ${median(bare).toFixed(3)} s)\n`);
writeReceipt("plan", { results, nodeSeconds: bare });
