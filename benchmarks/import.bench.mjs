// How fast does `rlcli import` read a dump of 60,000 OpenAI conversations (about 290 MB), beside jq and the Python importer
// that came before (which does less: it knows no rule but --min-messages, and leaves out what stands under `choices`)? With
// LARGE=N,M also dumps of so many conversations (300,000 are 1.4 GB, 1,040,000 are 5 GB), once each, to see whether time and
// memory stay in proportion. Fresh processes, the order of the variants turned from round to round, medians. Not measured:
// reading from a cold disk; every file is in memory after the first round, which is thrown away. Set POLYGRAMME_RLCLI to the
// program of `pip install polygramme-rlcli` in an environment of its own; without it, or without jq, those rows are left out.
// WRAP is put before every command that is timed (`chrt -r 1`, where others use the machine too).
// NOTE says what else there is to know about the machine at the time.
// Also what redaction finds in a corpus of made-up texts. Writes results/import.json.
import { spawnSync } from "node:child_process";
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { corpus, score } from "./import/corpus.mjs";
import { generate } from "./import/generate.mjs";
import { median, writeReceipt } from "./receipt.mjs";

const ROUNDS = Number(process.env.ROUNDS ?? 3);
const CONVERSATIONS = Number(process.env.CONVERSATIONS ?? 60_000);
const TEXTS = 20_000;
const WRAP = (process.env.WRAP ?? "").split(" ").filter(Boolean);
const rlcli = fileURLToPath(new URL("../bin/rlcli.js", import.meta.url));
const reference = process.env.POLYGRAMME_RLCLI;
const folder = mkdtempSync(join(tmpdir(), "rlcli-bench-import-"));
const dump = join(folder, "dump.jsonl");
const output = join(folder, "out.jsonl");
const ours = (...rules) => [process.execPath, [rlcli, "import", dump, "-f", "openai", "-o", output, ...rules]];

/** Growing conversations merge by default. `--max-tokens` is not among them: it is a tokenizer's speed. */
const ALL_RULES = ["--redact", "--where", "metadata.env!=x", "--split", "train", "--min-messages", "3"];

const VARIANTS = [
  ...(reference
    ? [{ name: "Python importer", command: [reference, ["import", dump, "-f", "openai", "-o", output]] }]
    : []),
  ...(spawnSync("jq", ["--version"]).status === 0
    ? [{ name: "jq -c '{messages}'", command: ["jq", ["-c", "{messages}", dump]], toFile: true }]
    : []),
  { name: "rlcli import, --dedupe none", command: ours("--dedupe", "none") },
  { name: "rlcli import, --dedupe none, one thread", command: ours("--dedupe", "none", "--threads", "0") },
  { name: "rlcli import", command: ours() },
  { name: "rlcli import, --redact", command: ours("--redact") },
  { name: "rlcli import, all rules", command: ours(...ALL_RULES) },
  { name: "rlcli import, all rules, --keep-tools", command: ours(...ALL_RULES, "--keep-tools") },
];

/** Seconds by the clock, of processors, and the most memory (GNU time counts a process with its threads). */
function timeOnce({ command: [program, args], toFile }) {
  const report = join(folder, "time");
  const out = toFile ? openSync(output, "w") : "ignore";
  const { status, stderr } = spawnSync(
    "/usr/bin/time",
    ["-f", "%e %U %S %M", "-o", report, ...WRAP, program, ...args],
    {
      stdio: ["ignore", out, "pipe"],
      encoding: "utf8",
    },
  );
  if (toFile) closeSync(out);
  if (status !== 0) throw new Error(`${program} failed with ${status}: ${stderr}`);
  const [wall, user, system, kib] = readFileSync(report, "utf8").trim().split(" ").map(Number);
  return {
    seconds: wall,
    processorSeconds: Math.round((user + system) * 100) / 100,
    memoryMiB: Math.round(kib / 1024),
  };
}

function measureSpeed(megabytes) {
  const samples = VARIANTS.map(() => []);
  for (const variant of VARIANTS) timeOnce(variant);
  for (let i = 0; i < ROUNDS; i++)
    for (let j = 0; j < VARIANTS.length; j++)
      samples[(i + j) % VARIANTS.length].push(timeOnce(VARIANTS[(i + j) % VARIANTS.length]));
  const base = reference ? median(samples[0].map((s) => s.seconds)) : undefined;
  return VARIANTS.map(({ name }, k) => {
    const seconds = median(samples[k].map((s) => s.seconds));
    return {
      name,
      medianSeconds: seconds,
      medianProcessorSeconds: median(samples[k].map((s) => s.processorSeconds)),
      megabytesPerSecond: Math.round(megabytes / seconds),
      ...(base ? { timesThePythonImporter: Math.round((base / seconds) * 100) / 100 } : {}),
      memoryMiB: Math.max(...samples[k].map((s) => s.memoryMiB)),
      raw: samples[k],
    };
  });
}

/** Once over a dump of another size. */
async function measureLarge(conversations) {
  const path = join(folder, "large.jsonl");
  await generate(path, conversations);
  const bytes = statSync(path).size;
  const args = (...rules) => [rlcli, "import", path, "-f", "openai", "-o", output, ...rules];
  const runs = [
    { name: "rlcli import", command: [process.execPath, args()] },
    { name: "rlcli import, all rules", command: [process.execPath, args(...ALL_RULES)] },
  ].map((variant) => {
    const measured = timeOnce(variant);
    return { name: variant.name, ...measured, megabytesPerSecond: Math.round(bytes / 1e6 / measured.seconds) };
  });
  rmSync(path);
  return { conversations, bytes, runs };
}

/** What redaction finds, by type, in texts that hold known values and things that only look like some. */
function measureRedaction() {
  const samples = corpus(TEXTS, 7);
  const rows = samples.map(({ text }) =>
    JSON.stringify({
      messages: [
        { role: "user", content: text },
        { role: "assistant", content: "ok" },
      ],
    }),
  );
  writeFileSync(dump, `${rows.join("\n")}\n`);
  const { status, stderr } = spawnSync(process.execPath, [rlcli, "import", dump, "--redact", "-o", output], {
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(stderr);
  const redacted = readFileSync(output, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).messages[0].content);
  const byType = score(samples, redacted);
  const sum = (key) => Object.values(byType).reduce((total, counts) => total + counts[key], 0);
  return {
    texts: TEXTS,
    recall: sum("gone") / sum("planted"),
    precision: 1 - Math.max(sum("wrong"), sum("named") - sum("planted")) / sum("named"),
    byType,
  };
}

try {
  await generate(dump, CONVERSATIONS);
  const bytes = statSync(dump).size;
  const loadBefore = loadavg()[0];
  const variants = measureSpeed(bytes / 1e6);
  const redaction = measureRedaction();
  const large = [];
  for (const count of (process.env.LARGE ?? "").split(",").filter(Boolean))
    large.push(await measureLarge(Number(count)));
  writeReceipt("import", {
    question: "How fast is rlcli import beside jq and the Python importer, and what does redaction find?",
    conversations: CONVERSATIONS,
    bytes,
    rounds: ROUNDS,
    ...(process.env.NOTE ? { note: process.env.NOTE } : {}),
    loadAverage: { before: loadBefore, after: loadavg()[0] },
    reference: reference && existsSync(reference) ? "polygramme-rlcli 0.1.0" : null,
    variants,
    ...(large.length > 0 ? { large } : {}),
    redaction,
  });
  for (const v of variants)
    process.stdout.write(
      `${v.name.padEnd(42)} ${v.medianSeconds.toFixed(2).padStart(6)} s ${String(v.megabytesPerSecond).padStart(5)} MB/s ${String(v.timesThePythonImporter ?? "").padStart(5)}x ${v.medianProcessorSeconds.toFixed(2)} s of processors ${v.memoryMiB} MiB\n`,
    );
  process.stdout.write(
    `redaction: recall ${redaction.recall.toFixed(4)}, precision ${redaction.precision.toFixed(4)}\n`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
