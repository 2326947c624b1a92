// Makes docs/recording/quickstart.svg: the quickstart typed into a terminal of its own (util-linux `script`), what it showed and when, drawn by
// svg.mjs. Nothing in it is written by hand but the commands; while progress is drawn again and again, time goes five times as fast. `node docs/recording/record.mjs`, after `npm run build`; it takes a minute.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Screen } from "./screen.mjs";
import { drawSvg } from "./svg.mjs";

const [COLUMNS, ROWS] = [92, 26];
const COMMANDS = [
  "rlcli init quickstart --yes && cd quickstart",
  "rlcli apply --auto-approve",
  'rlcli sample assistant --prompt "What is the plan command?" --temperature 0',
  "sed -i 's/learning_rate: 3e-3/learning_rate: 1e-3/' rlcli.yaml",
  "rlcli plan",
];

const root = fileURLToPath(new URL("../..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "rlcli-recording-"));

/** Types each command as a person would see it, then runs it. */
const driver = `
stty cols ${COLUMNS} rows ${ROWS}
export PATH=${folder}:$PATH TERM=xterm-256color
unset NO_COLOR CI
type_and_run() { printf '\\033[1;32m$\\033[0m '; sleep 0.4; for ((i = 0; i < \${#1}; i++)); do printf '%s' "\${1:i:1}"; sleep 0.02; done; echo; eval "$1"; sleep 0.8; }
${COMMANDS.map((command) => `type_and_run ${JSON.stringify(command).replaceAll("$", "\\$")}`).join("\n")}
sleep 3
`;

try {
  symlinkSync(join(root, "bin/rlcli.js"), join(folder, "rlcli"));
  writeFileSync(join(folder, "driver.sh"), driver);
  const [output, timing] = [join(folder, "output"), join(folder, "timing")];
  const { status, stderr } = spawnSync(
    "script",
    ["--quiet", "--return", "--log-out", output, "--log-timing", timing, "--command", "bash driver.sh"],
    { cwd: folder, encoding: "utf8", input: "" },
  );
  if (status !== 0) throw new Error(`the recording ended with ${status}: ${stderr}`);
  const frames = framesOf(readFileSync(output), readFileSync(timing, "utf8"));
  writeFileSync(new URL("quickstart.svg", import.meta.url), drawSvg(frames, { columns: COLUMNS, rows: ROWS }));
  spawnSync(process.execPath, [
    join(root, "bin/rlcli.js"),
    "-C",
    join(folder, "quickstart"),
    "serve",
    "stop",
    "--force",
  ]);
} finally {
  rmSync(folder, { recursive: true, force: true });
}

/** What the screen showed, and from when on. Moments that last less than a fifth of a second are part of the next. */
function framesOf(bytes, timing) {
  const SHORTEST_MS = 200;
  const REDRAWN_SPEED = 5;
  const screen = new Screen(COLUMNS, ROWS);
  const frames = [];
  // `script` writes a line of its own before and after the session.
  let [at, ms] = [bytes.indexOf("\n") + 1, 0];
  for (const line of timing.trim().split("\n")) {
    const [seconds, count] = line.split(" ").map(Number);
    const text = bytes.subarray(at, at + count).toString();
    // biome-ignore lint/suspicious/noControlCharactersInRegex: the cursor goes up where lines are drawn again.
    ms += Math.round((seconds * 1000) / (/\x1b\[\d*A/.test(text) ? REDRAWN_SPEED : 1));
    screen.write(text);
    at += count;
    const last = frames.at(-1);
    if (last && ms - last.ms < SHORTEST_MS) last.rows = screen.rows();
    else frames.push({ ms, rows: screen.rows() });
  }
  return frames;
}
