// What does starting rlcli cost, as a multiple of starting Node? Fresh processes, the order of the variants turned from
// round to round, medians of 20. Not measured: the first start after a boot, and Node's compile cache while it fills
// (one round is thrown away). Writes results/startup.json; `--check` fails where a ratio is above its bound.
import { spawnSync } from "node:child_process";
import { loadavg } from "node:os";
import { fileURLToPath } from "node:url";
import { median, writeReceipt } from "./receipt.mjs";

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

const loadBefore = loadavg()[0];
const variants = measure();
writeReceipt("startup", {
  question: "What does starting rlcli cost, as a multiple of starting Node?",
  rounds: ROUNDS,
  loadAverage: { before: loadBefore, after: loadavg()[0] },
  variants,
});
for (const { name, medianMs, ratio, bound } of variants)
  process.stdout.write(
    `${name.padEnd(30)} ${medianMs.toFixed(1).padStart(7)} ms  ${ratio.toFixed(2)}x${bound ? ` (bound ${bound}x)` : ""}\n`,
  );
const failed = variants.filter(({ ratio, bound }) => bound !== undefined && ratio > bound);
if (process.argv.includes("--check") && failed.length > 0) {
  process.stderr.write(`Too slow: ${failed.map((v) => v.name).join(", ")}\n`);
  process.exitCode = 1;
}
