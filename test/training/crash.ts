/** Starts the child that can be killed (child.ts), bundled once into a temporary folder. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import type { RunEnd } from "../../src/run-record.ts";
import type { ServerConnection } from "../../src/training/training.ts";
import { tinyFolder } from "./order.ts";

export async function bundleChild(): Promise<string> {
  // Below the project, so that packages which are not bundled are found.
  const folder = mkdtempSync(fileURLToPath(new URL("../../node_modules/.rlcli-child-", import.meta.url)));
  process.once("exit", () => rmSync(folder, { recursive: true, force: true }));
  const input = fileURLToPath(new URL("child.ts", import.meta.url));
  const define = { __RLCLI_VERSION__: JSON.stringify("0.0.0-test") };
  const bundle = await rolldown({
    input,
    platform: "node",
    external: [/^node:/, "dockerode"],
    transform: { define },
    logLevel: "silent",
  });
  const file = join(folder, "child.mjs");
  await bundle.write({ file, format: "esm", codeSplitting: false });
  await bundle.close();
  return file;
}

export interface ChildOptions {
  readonly folder: string;
  readonly connection: ServerConnection;
  readonly modelFolder?: string;
  readonly killAt?: number;
}

export interface ChildResult {
  readonly killed: boolean;
  readonly end: RunEnd | undefined;
  readonly points: readonly string[];
}

/** Runs the child to its end or death. `killAfterMs` kills it from outside at any moment. */
export async function runChild(
  bundle: string,
  { folder, connection, modelFolder = tinyFolder, killAt }: ChildOptions,
  killAfterMs?: number,
): Promise<ChildResult> {
  const base = mkdtempSync(join(tmpdir(), "rlcli-child-run-"));
  const [connectionPath, points] = [join(base, "connection.json"), join(base, "points.txt")];
  writeFileSync(connectionPath, JSON.stringify(connection));
  writeFileSync(points, "");
  const order = { folder, modelFolder, connection: connectionPath, points, ...(killAt ? { killAt } : {}) };
  const child = spawn(process.execPath, [bundle, JSON.stringify(order)], { stdio: ["ignore", "pipe", "inherit"] });
  const timer = killAfterMs === undefined ? undefined : setTimeout(() => child.kill("SIGKILL"), killAfterMs);
  let out = "";
  child.stdout.on("data", (chunk) => {
    out += chunk;
  });
  const signal = await new Promise((done) => child.on("close", (_, by) => done(by)));
  clearTimeout(timer);
  return {
    killed: signal === "SIGKILL",
    end: out === "" ? undefined : (JSON.parse(out) as RunEnd),
    points: readFileSync(points, "utf8").split("\n").slice(0, -1),
  };
}
