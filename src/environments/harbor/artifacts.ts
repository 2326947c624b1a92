/** Files that a task asks to be kept of its container, best effort: what cannot be had is noted, and fails nothing. */
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { messageOf } from "../../diagnostic.ts";
import { gitIgnore } from "../sandbox/ignore.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Artifact } from "./config.ts";

/** Where a trial's files go. */
export interface TrialOutput {
  /** `path` is relative, with `/`. */
  write(path: string, bytes: Uint8Array | string): void;
}

export function folderOutput(folder: string): TrialOutput {
  return {
    write(path, bytes) {
      mkdirSync(dirname(join(folder, path)), { recursive: true });
      writeFileSync(join(folder, path), bytes);
    },
  };
}

/** Files of a step lie apart. */
export const inStep = (step: string | undefined, path: string): string =>
  step === undefined ? path : `steps/${step}/${path}`;

const LIMITS = { bytes: 256 << 20, entries: 10_000 };
/** Kept whether or not a task asks for it. */
export const ALWAYS: Artifact = { source: "/logs/artifacts", exclude: [] };

interface ManifestLine {
  readonly source: string;
  readonly destination: string;
  readonly status: "ok" | "failed" | "empty" | "skipped";
  readonly exclude: readonly string[];
  readonly message?: string;
}

export async function collectArtifacts(
  sandbox: Sandbox,
  wanted: readonly Artifact[],
  output: TrialOutput,
  step: string | undefined,
): Promise<void> {
  const manifest: ManifestLine[] = [];
  const taken = new Set<string>();
  for (const { source, destination = source.replace(/^\/+/, ""), exclude } of [ALWAYS, ...wanted]) {
    const line = { source, destination, exclude };
    if (taken.has(destination)) {
      manifest.push({ ...line, status: "skipped" });
      continue;
    }
    taken.add(destination);
    try {
      const files = await sandbox.download(source, LIMITS);
      const rules = gitIgnore(exclude.join("\n"));
      const kept = (files ?? []).filter(({ path }) => path === "" || !rules.ignores(path));
      for (const { path, bytes } of kept)
        output.write(inStep(step, `artifacts/${path === "" ? destination : `${destination}/${path}`}`), bytes);
      manifest.push({ ...line, status: files === undefined ? "failed" : kept.length === 0 ? "empty" : "ok" });
    } catch (error) {
      manifest.push({ ...line, status: "failed", message: messageOf(error) });
    }
  }
  output.write(inStep(step, "artifacts/manifest.json"), `${JSON.stringify(manifest, null, 2)}\n`);
}
