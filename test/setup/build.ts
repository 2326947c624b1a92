import { execFileSync } from "node:child_process";

/** Tests that start processes or threads run the bundle, so it is built once before any of them. */
export default function buildOnce(): void {
  execFileSync(process.execPath, ["build.mjs"], {
    cwd: new URL("../..", import.meta.url).pathname,
    stdio: "pipe",
  });
}
