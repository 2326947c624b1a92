// A server of its own for a benchmark, started and stopped through the program itself.
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const rlcli = fileURLToPath(new URL("../bin/rlcli.js", import.meta.url));

/** `stop` ends it and takes its files away. */
export async function startEmbedded(model) {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-bench-"));
  const run = (...words) => {
    const { status, stderr } = spawnSync(process.execPath, [rlcli, ...words], { cwd: folder, encoding: "utf8" });
    if (status !== 0) throw new Error(`rlcli ${words.join(" ")}: ${stderr}`);
  };
  run("serve", "start", "--base-model", model);
  const path = readdirSync(folder, { recursive: true }).find((name) => String(name).endsWith("runtime.json"));
  const { url, token } = JSON.parse(readFileSync(join(folder, String(path)), "utf8"));
  const stop = () => {
    run("serve", "stop", "--base-model", model, "--force");
    rmSync(folder, { recursive: true, force: true });
  };
  return { url, token, stop };
}
