// What does installing rlcli cost? `npm pack`, then `npm install` of that tarball into an empty folder, with and without optional packages
// (npm's own cache may be warm); then the quickstart's first plan and apply from there, so that what was measured is known to work. Writes
// results/package.json; `--check` fails above 60 MB or where the quickstart does not end without changes.
import { spawnSync } from "node:child_process";
import { lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { writeReceipt } from "./receipt.mjs";

const MOST_MB = 60;
const root = fileURLToPath(new URL("..", import.meta.url));
const scratch = mkdtempSync(join(tmpdir(), "rlcli-package-"));

function run(cwd, command, ...args) {
  const started = performance.now();
  const { status, stdout, stderr } = spawnSync(command, args, { cwd, encoding: "utf8", maxBuffer: 1 << 26 });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")} ended with ${status}: ${stderr}`);
  return { stdout, seconds: Math.round((performance.now() - started) / 100) / 10 };
}

/** Bytes of all files below, and as blocks of 4 KiB, which is what a disk gives them. */
function sizeOf(folder) {
  let [bytes, onDisk] = [0, 0];
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (!entry.isFile()) continue;
    const { size } = lstatSync(join(entry.parentPath ?? entry.path, entry.name));
    bytes += size;
    onDisk += Math.ceil(size / 4096) * 4096;
  }
  return { megabytes: Math.round(bytes / 1e5) / 10, megabytesOnDisk: Math.round(onDisk / 1e5) / 10 };
}

function install(name, tarball, ...options) {
  const folder = join(scratch, name);
  mkdirSync(folder);
  const { seconds } = run(folder, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", ...options, tarball);
  const { stdout } = run(folder, "npm", "ls", "--all", "--parseable");
  return { folder, seconds, packages: stdout.trim().split("\n").length - 1, ...sizeOf(join(folder, "node_modules")) };
}

try {
  const [packed] = JSON.parse(run(root, "npm", "pack", "--silent", "--json", "--pack-destination", scratch).stdout);
  const tarball = join(scratch, packed.filename);
  const { folder, ...all } = install("all", tarball);
  const { folder: _, ...lean } = install("lean", tarball, "--omit=optional");
  run(folder, "npx", "--no-install", "rlcli", "init", "quickstart");
  const project = join(folder, "quickstart");
  const { seconds: applySeconds } = run(project, "npx", "--no-install", "rlcli", "apply", "--auto-approve");
  run(project, "npx", "--no-install", "rlcli", "plan", "--detailed-exitcode");
  run(project, "npx", "--no-install", "rlcli", "destroy", "--auto-approve");
  const megabytes = (bytes) => Math.round(bytes / 1e5) / 10;
  writeReceipt("package", {
    question: "What does installing rlcli cost?",
    tarball: { megabytes: megabytes(packed.size), unpackedMegabytes: megabytes(packed.unpackedSize) },
    installed: all,
    withoutOptional: lean,
    quickstart: { applySeconds },
    bound: { installedMegabytesOnDisk: MOST_MB },
  });
  process.stdout.write(`installed: ${JSON.stringify(all)}\nwithout optional packages: ${JSON.stringify(lean)}\n`);
  if (process.argv.includes("--check") && all.megabytesOnDisk > MOST_MB) {
    process.stderr.write(`More than ${MOST_MB} MB.\n`);
    process.exitCode = 1;
  }
} finally {
  rmSync(scratch, { recursive: true, force: true });
}
