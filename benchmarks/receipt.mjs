// What every benchmark shares: medians, and a receipt that says where, when and how a number was measured.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));

export function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

/** Writes results/NAME.json: what was asked, by which command, on which machine, and the raw values in `body`. */
export function writeReceipt(name, body) {
  const { version, devDependencies } = JSON.parse(readFileSync(`${root}package.json`, "utf8"));
  const receipt = {
    formatVersion: 1,
    command: `node benchmarks/${name}.bench.mjs`,
    date: new Date().toISOString().slice(0, 10),
    commit: execFileSync("git", ["rev-parse", "HEAD"], { cwd: root, encoding: "utf8" }).trim(),
    version,
    node: process.version,
    machine: {
      platform: `${process.platform} ${process.arch}`,
      cpu: cpus()[0]?.model ?? "",
      cores: cpus().length,
      memoryGiB: Math.round(totalmem() / 2 ** 30),
    },
    dependencies: Object.fromEntries(["@jax-js/jax", "yaml"].map((key) => [key, devDependencies[key]])),
    ...body,
  };
  writeFileSync(`${root}benchmarks/results/${name}.json`, `${JSON.stringify(receipt, null, 2)}\n`);
}
