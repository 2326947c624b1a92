// What does starting rlcli cost, as a multiple of starting Node? Fresh processes, the order of the variants turned from
// round to round, medians of 20. Not measured: the first start after a boot, and Node's compile cache while it fills
// (one round is thrown away). Writes results/startup.json; `--check` fails where a ratio is above its bound.
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { fileURLToPath } from "node:url";

const ROUNDS = 20;
const root = fileURLToPath(new URL("..", import.meta.url));
const rlcli = `${root}bin/rlcli.js`;
const quickstart = `${root}examples/quickstart/rlcli.yaml`;

/** bound: the most that the median may be as a multiple of the first variant's. */
const VARIANTS = [
  { name: "node -e 0", args: ["-e", "0"], bound: undefined },
  { name: "rlcli --version", args: [rlcli, "--version"], bound: 1.5 },
  { name: "rlcli --help", args: [rlcli, "--help"], bound: undefined },
  { name: "rlcli validate (quickstart)", args: [rlcli, "validate", "-f", quickstart], bound: 3 },
];

function timeOnce({ name, args }) {
  const started = process.hrtime.bigint();
  const { status, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
  const ms = Number(process.hrtime.bigint() - started) / 1e6;
  if (status !== 0) throw new Error(`${name} failed with ${status}: ${stderr}`);
  return ms;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

const round = (ms) => Math.round(ms * 100) / 100;

function measure() {
  const samples = VARIANTS.map(() => []);
  for (const variant of VARIANTS) timeOnce(variant);
  for (let i = 0; i < ROUNDS; i++)
    for (let j = 0; j < VARIANTS.length; j++) {
      const k = (i + j) % VARIANTS.length;
      samples[k].push(round(timeOnce(VARIANTS[k])));
    }
  const base = median(samples[0]);
  return VARIANTS.map(({ name, bound }, k) => ({
    name,
    medianMs: round(median(samples[k])),
    ratio: round(median(samples[k]) / base),
    ...(bound === undefined ? {} : { bound }),
    rawMs: samples[k],
  }));
}

const load = round(loadavg()[0]);
const variants = measure();
const receipt = {
  formatVersion: 1,
  question: "What does starting rlcli cost, as a multiple of starting Node?",
  command: "node benchmarks/startup.bench.mjs",
  commit: execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" }).trim(),
  version: JSON.parse(readFileSync(`${root}package.json`, "utf8")).version,
  node: process.version,
  machine: {
    platform: `${process.platform} ${process.arch}`,
    cpu: cpus()[0]?.model ?? "",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    /** Over the last minute, before the first round: above the number of cores, ratios still hold and times do not. */
    load,
  },
  rounds: ROUNDS,
  variants,
};
mkdirSync(new URL("results/", import.meta.url), { recursive: true });
writeFileSync(new URL("results/startup.json", import.meta.url), `${JSON.stringify(receipt, null, 2)}\n`);
for (const { name, medianMs, ratio, bound } of variants)
  process.stdout.write(
    `${name.padEnd(30)} ${medianMs.toFixed(1).padStart(7)} ms  ${ratio.toFixed(2)}x${bound ? ` (bound ${bound}x)` : ""}\n`,
  );
const failed = variants.filter(({ ratio, bound }) => bound !== undefined && ratio > bound);
if (process.argv.includes("--check") && failed.length > 0) {
  process.stderr.write(`Too slow: ${failed.map((v) => v.name).join(", ")}\n`);
  process.exitCode = 1;
}
