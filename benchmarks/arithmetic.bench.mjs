// Does the curve ignite? examples/arithmetic-gspo with five seeds, each from scratch through the program itself: what the eval says before
// the first step and every ten steps, how many steps it took to pass 0.9, how long it all took. Writes a receipt and a picture.
//
//   node benchmarks/arithmetic.bench.mjs [--seeds 5]
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { writeReceipt } from "./receipt.mjs";

const { values: flags } = parseArgs({ options: { seeds: { type: "string", default: "5" } } });
const root = fileURLToPath(new URL("..", import.meta.url));
const GOAL = 0.9;

async function rlcli(cwd, ...args) {
  const child = spawn(process.execPath, [join(root, "bin/rlcli.js"), ...args], {
    cwd,
    stdio: ["ignore", "ignore", "pipe"],
  });
  let said = "";
  child.stderr.on("data", (chunk) => {
    said += chunk;
  });
  const code = await new Promise((done) => child.on("close", done));
  if (code !== 0) throw new Error(`rlcli ${args.join(" ")} exited with ${code}:\n${said}`);
}

const lines = (path) =>
  readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .slice(1)
    .map((line) => JSON.parse(line));

/** The record folder of a run's only incarnation. */
function recordOf(folder, run) {
  const base = join(folder, ".rlcli/runs", run);
  return join(base, readdirSync(base)[0], "1");
}

async function curveOf(seed) {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-arithmetic-"));
  try {
    cpSync(join(root, "examples/arithmetic-gspo"), folder, { recursive: true });
    const began = performance.now();
    await rlcli(folder, "apply", "--auto-approve", "--var", `seed=${seed}`);
    const seconds = (performance.now() - began) / 1000;
    const record = recordOf(folder, "agent");
    const evals = lines(join(record, "evals.jsonl")).map(({ step, metrics }) => [step, metrics.reward]);
    const rewards = lines(join(record, "metrics.jsonl")).map(({ step, values }) => [step, values["reward/mean"]]);
    await rlcli(folder, "serve", "stop", "--all").catch(() => {});
    return { seed, seconds: Math.round(seconds), evals, rewards };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const COLOURS = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad", "#d68910"];

/** Reward by step, one line a seed. */
function picture(curves) {
  const [width, height, left, bottom] = [640, 360, 52, 40];
  const steps = Math.max(...curves.flatMap(({ evals }) => evals.map(([step]) => step)));
  const x = (step) => left + (step / steps) * (width - left - 16);
  const y = (reward) => height - bottom - reward * (height - bottom - 28);
  const path = (points) =>
    points.map(([step, reward], i) => `${i === 0 ? "M" : "L"}${x(step).toFixed(1)} ${y(reward).toFixed(1)}`).join("");
  const text = (at, words, more = "") => `<text x="${at[0]}" y="${at[1]}" ${more}>${words}</text>`;
  const grid = [0, 0.25, 0.5, 0.75, 1].map(
    (value) =>
      `<path d="M${left} ${y(value)}H${width - 16}" stroke="#ddd"/>${text([left - 8, y(value) + 4], value, 'text-anchor="end"')}`,
  );
  const ticks = Array.from({ length: Math.floor(steps / 10) + 1 }, (_, i) => i * 10).map((step) =>
    text([x(step), height - bottom + 18], step, 'text-anchor="middle"'),
  );
  const drawn = curves.map(
    ({ evals }, i) => `<path d="${path(evals)}" fill="none" stroke="${COLOURS[i % COLOURS.length]}" stroke-width="2"/>`,
  );
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" font-family="sans-serif" font-size="12">
<rect width="${width}" height="${height}" fill="#fff"/>
${grid.join("\n")}
<path d="M${left} ${y(GOAL)}H${width - 16}" stroke="#888" stroke-dasharray="4 4"/>
${ticks.join("\n")}
${drawn.join("\n")}
${text([left, 18], `Sums right, by step of GSPO: ${curves.length} seeds on the embedded server`, 'font-size="14"')}
${text([(width + left) / 2, height - 8], "step", 'text-anchor="middle"')}
</svg>
`;
}

const load = loadavg().map((value) => Number(value.toFixed(2)));
const curves = [];
for (let seed = 0; seed < Number(flags.seeds); seed++) {
  const curve = await curveOf(seed);
  const passed = curve.evals.find(([, reward]) => reward > GOAL);
  console.log(
    `seed ${seed}: ${curve.evals[0][1].toFixed(2)} before, ${passed ? `above ${GOAL} at step ${passed[0]}` : `best ${Math.max(...curve.evals.map(([, r]) => r)).toFixed(2)}`}, ${curve.seconds} s`,
  );
  curves.push({ ...curve, passedAt: passed?.[0] ?? null });
}
writeReceipt("arithmetic", {
  question: "Does GSPO ignite on single-digit sums from a warm-up that is mostly wrong, with every seed?",
  goal: GOAL,
  passed: curves.filter(({ passedAt }) => passedAt !== null).length,
  seeds: curves.length,
  load,
  curves,
});
writeFileSync(join(root, "benchmarks/results/arithmetic.svg"), picture(curves));
