import { spawnSync } from "node:child_process";

/** Tests that start processes or threads run the bundle, so it is built once before any of them. */
export default function buildOnce(): void {
  // For unit tests in the middle of a change that does not build yet.
  if (process.env.RLCLI_SKIP_BUILD) return;
  const cwd = new URL("../..", import.meta.url).pathname;
  const { status, stderr } = spawnSync(process.execPath, ["build.mjs"], { cwd, encoding: "utf8" });
  if (status !== 0) throw new Error(`the bundle does not build:\n${stderr}`);
}
