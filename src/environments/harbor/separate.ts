/**
 * Tests in a container of their own: where that comes from, and what crosses over to it from the agent's, which is gone by then. Only
 * artifacts do, at the paths at which they were; links stay behind.
 */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { gitIgnore } from "../sandbox/ignore.ts";
import type { DownloadedFile, Sandbox } from "../sandbox/sandbox.ts";
import { readTree } from "../sandbox/tree.ts";
import type { Artifact, EnvironmentConfig, TaskConfig } from "./config.ts";

export interface VerifierPlace {
  /** Limits, network, variables, working directory. */
  readonly environment: EnvironmentConfig;
  /** Folder with its Dockerfile; not looked at where there is an `image`. */
  readonly context: string;
  readonly image?: string;
  /** Its image holds the tests: none are copied into it. */
  readonly isBundled: boolean;
}

/** Of a step, or with index 0 of a task without steps; undefined where tests run in the agent's container. */
export function verifierPlace(folder: string, config: TaskConfig, index: number): VerifierPlace | undefined {
  const step = config.steps[index];
  if (!(step ?? config).verifier.isSeparate) return undefined;
  const task = config.verifier.environment;
  const own = step?.verifier.environment;
  const environment = own ?? task ?? config.environment;
  const candidates = [
    ...(step ? [{ image: own?.image, context: join(folder, "steps", step.name, "tests") }] : []),
    { image: task?.image, context: join(folder, "tests") },
  ];
  for (const { image, context } of candidates) {
    if (image !== undefined) return { environment, context, image, isBundled: true };
    if (existsSync(join(context, "Dockerfile"))) return { environment, context, isBundled: true };
  }
  const { image } = config.environment;
  return {
    environment,
    context: join(folder, "environment"),
    ...(image === undefined ? {} : { image }),
    isBundled: false,
  };
}

const LIMITS = { bytes: 256 << 20, entries: 10_000 };

/** Artifacts on their way, in a folder of the host. */
export class Luggage {
  readonly #folder = mkdtempSync(join(tmpdir(), "rlcli-artifacts-"));
  readonly #targets: string[] = [];

  /** What is not there does not cross. Fails with RL7303 where there is more than may be read: without it a verdict would be false. */
  async take(from: Sandbox, artifacts: readonly Artifact[]): Promise<void> {
    for (const { source, exclude } of artifacts) {
      const path = source.startsWith("/") ? source : `/${source}`;
      const rules = gitIgnore(exclude.join("\n"));
      const files = (await from.download(path, LIMITS)) ?? [];
      const kept = files.filter((file) => file.path === "" || !rules.ignores(file.path));
      if (kept.length > 0) this.#pack(path, kept);
    }
  }

  /** A file goes into the folder that it was in, a folder's files into that folder. */
  #pack(source: string, files: readonly DownloadedFile[]): void {
    const isFile = files.length === 1 && files[0]?.path === "";
    const at = this.#targets.push(isFile ? dirname(source) : source) - 1;
    for (const { path, mode, bytes } of files) {
      const to = join(this.#folder, String(at), isFile ? basename(source) : path);
      mkdirSync(dirname(to), { recursive: true });
      writeFileSync(to, bytes);
      chmodSync(to, mode | 0o400);
    }
  }

  async give(to: Sandbox): Promise<void> {
    for (const [at, target] of this.#targets.entries())
      await to.upload(readTree(join(this.#folder, String(at))), target);
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
