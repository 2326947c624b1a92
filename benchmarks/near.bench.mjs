// What does `rlcli import --dedupe near` find, and what does it cost? Found: in conversations of which some are changed copies of others, beside
// comparing all with all. Cost: over a dump of OpenAI conversations, beside --dedupe prefix (which near does too) and none. Fresh
// processes, in turn, medians; time of processors beside that by the clock, since the latter depends on who else uses the machine.
// Writes results/near.json.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { generate } from "./import/generate.mjs";
import { generator } from "./import/near.mjs";
import { median, writeReceipt } from "./receipt.mjs";

const ROUNDS = Number(process.env.ROUNDS ?? 3);
const CONVERSATIONS = Number(process.env.CONVERSATIONS ?? 60_000);
const CHATS = Number(process.env.CHATS ?? 3000);
const THRESHOLDS = [0.6, 0.7, 0.8, 0.9];
const rlcli = fileURLToPath(new URL("../bin/rlcli.js", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "rlcli-bench-near-"));
const [input, output] = [join(folder, "in.jsonl"), join(folder, "out.jsonl")];

/** Word 5-grams as texts, as docs/guide/import.md describes them. */
function shingles(messages) {
  const words = messages.flatMap(({ role, content }) => [
    `<${role}>`,
    ...(content.toLowerCase().match(/[\p{L}\p{N}\p{M}]+/gu) ?? []),
  ]);
  const size = Math.min(5, words.length);
  return new Set(Array.from({ length: words.length - size + 1 }, (_, i) => words.slice(i, i + size).join(" ")));
}

function similarity(a, b) {
  let shared = 0;
  for (const each of a) if (b.has(each)) shared += 1;
  return shared / (a.size + b.size - shared);
}

/** Of each, the highest similarity to an earlier one. */
function nearest(sets) {
  return sets.map((set, i) => {
    let most = 0;
    for (let j = 0; j < i; j++) {
      const other = sets[j];
      if (Math.min(set.size, other.size) > most * Math.max(set.size, other.size))
        most = Math.max(most, similarity(set, other));
    }
    return most;
  });
}

function importWith(file, ...rules) {
  const report = join(folder, "time");
  const { status, stderr } = spawnSync(
    "/usr/bin/time",
    ["-f", "%e %U %S %M", "-o", report, process.execPath, rlcli, "import", file, "-o", output, ...rules],
    { encoding: "utf8", stdio: ["ignore", "ignore", "pipe"] },
  );
  if (status !== 0) throw new Error(stderr);
  const [seconds, user, system, kib] = readFileSync(report, "utf8").trim().split(" ").map(Number);
  return { seconds, processorSeconds: Math.round((user + system) * 100) / 100, memoryMiB: Math.round(kib / 1024) };
}

/** Precision: of those left out, how many are like an earlier one. Recall: of those that are, how many were left out. */
function measureFound() {
  const chats = generator(7).chats(CHATS);
  writeFileSync(input, chats.map((messages) => `${JSON.stringify({ messages })}\n`).join(""));
  const sets = chats.map(shingles);
  const most = nearest(sets);
  return THRESHOLDS.map((threshold) => {
    importWith(input, "--dedupe", "near", "--near-threshold", String(threshold), "--min-messages", "1");
    const kept = readFileSync(output, "utf8").split("\n");
    let next = 0;
    const isKept = chats.map((messages) => {
      const isNext = JSON.stringify({ messages }) === kept[next];
      if (isNext) next += 1;
      return isNext;
    });
    const left = isKept.filter((stays) => !stays).length;
    // A copy of a copy may be like one that is itself left out, and like none that stays: it is rightly kept.
    const stay = [];
    const due = chats.map((_, i) => {
      const isDue = most[i] >= threshold && stay.some((j) => similarity(sets[j], sets[i]) >= threshold);
      if (isKept[i]) stay.push(i);
      return isDue;
    });
    const right = chats.filter((_, i) => due[i] && !isKept[i]).length;
    return {
      threshold,
      near: due.filter(Boolean).length,
      leftOut: left,
      precision: right / left,
      recall: right / due.filter(Boolean).length,
    };
  });
}

function measureCost() {
  const variants = ["none", "prefix", "near"];
  const raw = variants.map(() => []);
  for (let i = 0; i < ROUNDS; i++)
    for (const [k, how] of variants.entries()) raw[k].push(importWith(input, "-f", "openai", "--dedupe", how));
  return variants.map((dedupe, k) => ({
    dedupe,
    medianSeconds: median(raw[k].map((sample) => sample.seconds)),
    medianProcessorSeconds: median(raw[k].map((sample) => sample.processorSeconds)),
    memoryMiB: Math.max(...raw[k].map((sample) => sample.memoryMiB)),
    raw: raw[k],
  }));
}

try {
  const found = measureFound();
  await generate(input, CONVERSATIONS);
  const bytes = statSync(input).size;
  const loadBefore = loadavg()[0];
  const cost = measureCost();
  writeReceipt("near", {
    question: "What does rlcli import --dedupe near find, and what does it cost?",
    chats: CHATS,
    found,
    conversations: CONVERSATIONS,
    bytes,
    rounds: ROUNDS,
    loadAverage: { before: loadBefore, after: loadavg()[0] },
    cost,
  });
  for (const { threshold, near, precision, recall } of found)
    process.stdout.write(
      `at ${threshold}: ${near} near duplicates, precision ${precision.toFixed(4)}, recall ${recall.toFixed(4)}\n`,
    );
  for (const { dedupe, medianSeconds, medianProcessorSeconds, memoryMiB } of cost)
    process.stdout.write(
      `--dedupe ${dedupe.padEnd(7)} ${medianSeconds.toFixed(2)} s, ${medianProcessorSeconds.toFixed(2)} s of processors, ${memoryMiB} MiB\n`,
    );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
