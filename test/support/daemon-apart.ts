/** The machine's Docker daemon as if nobody else used it: other tests are at work on it at the same time, and tidy up. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import Docker from "dockerode";

export interface DaemonApart {
  readonly docker: Docker;
  /** For DOCKER_HOST. */
  readonly host: string;
  close(): void;
}

/** See daemon-apart.mjs. */
export async function openDaemonApart(): Promise<DaemonApart> {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-apart-"));
  const socketPath = join(folder, "docker.sock");
  const program = fileURLToPath(new URL("daemon-apart.mjs", import.meta.url));
  const word = `test-${process.pid}-${Date.now()}.`;
  const child = spawn(process.execPath, [program, socketPath, word], { stdio: ["pipe", "pipe", "inherit"] });
  await once(child.stdout, "data");
  const close = (): void => {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  };
  return { docker: new Docker({ socketPath }), host: `unix://${socketPath}`, close };
}
