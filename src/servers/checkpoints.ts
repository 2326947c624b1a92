/**
 * Checkpoints of an embedded server on disk. They belong to the server's folder, not to its process: whoever has the
 * folder can list and delete them while nothing runs.
 *
 *   checkpoints/<run>/run.json
 *   checkpoints/<run>/weights/<name>/          checkpoint.json, the weights, optimizer.safetensors
 *   checkpoints/<run>/sampler_weights/<name>/  checkpoint.json, the weights
 *   checkpoints/<run>/external_weights/<name>/ the same, for other programs
 *
 * The weights of a LoRA model are a PEFT adapter (adapter_config.json, adapter_model.safetensors), those of a fully
 * trained one a Hugging Face folder (config.json, model.safetensors, the tokenizer's files); a critic has its head in
 * value_head.safetensors beside them.
 *
 * SkyRL keeps each of its checkpoints in one archive, or in a folder of that name:
 *
 *   checkpoints/<run>/<name>.tar.gz                  training weights
 *   checkpoints/<run>/sampler_weights/<name>.tar.gz
 *
 * `<run>` is the model's id with `:` written as `_`. A checkpoint's folder appears by one rename, complete or not at all.
 */
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Digest } from "../digest.ts";
import { syncFolder, temporaryName, writeFileWhole } from "../files.ts";

export const CHECKPOINT_VERSION = 1;

export type CheckpointKind = "weights" | "sampler_weights" | "external_weights";
const KINDS: readonly CheckpointKind[] = ["weights", "sampler_weights", "external_weights"];

/** What a checkpoint may be called: it is a folder's name and part of a path. */
export const CHECKPOINT_NAME = /^[a-zA-Z0-9_-]{1,255}$/;
const RUN_NAME = /^[a-zA-Z0-9:_-]{1,255}$/;

/** `tinker://{run}/{kind}/{name}`. */
export interface CheckpointPath {
  readonly run: string;
  readonly kind: CheckpointKind;
  readonly name: string;
}

export interface LoraSettings {
  readonly rank: number;
  readonly alpha: number;
  readonly seed: number;
  /** Which linear maps have an adapter. */
  readonly attention: boolean;
  readonly mlp: boolean;
  readonly unembedding: boolean;
}

/** A policy gives log-probabilities of tokens, a critic a value at each. */
export type ModelRole = "policy" | "critic";

export interface CheckpointInfo extends CheckpointPath {
  readonly formatVersion: typeof CHECKPOINT_VERSION;
  readonly at: string;
  /** As clients name it. */
  readonly baseModel: string;
  readonly lora: LoraSettings | null;
  readonly role: ModelRole;
  /** Optimizer updates in these weights. */
  readonly step: number;
  readonly sizeBytes: number;
  /** Digests of the data files. */
  readonly files: Readonly<Record<string, Digest>>;
  readonly userMetadata: Readonly<Record<string, string>> | null;
  readonly expiresAt: string | null;
  /** Whether its owner has published it; nothing here depends on it. */
  readonly isPublic?: boolean;
}

export interface RunInfo {
  readonly formatVersion: typeof CHECKPOINT_VERSION;
  readonly run: string;
  readonly session: string;
  readonly baseModel: string;
  readonly lora: LoraSettings | null;
  readonly createdAt: string;
  readonly userMetadata: Readonly<Record<string, string>> | null;
}

/** Splits a path; undefined if it is not one. The two-part form means sampler weights, as SkyRL issues it. */
export function parseCheckpointPath(path: string): CheckpointPath | undefined {
  const parts = path.startsWith("tinker://") ? path.slice("tinker://".length).split("/") : [];
  const [run, kind, name] = parts.length === 2 ? [parts[0], "sampler_weights", parts[1]] : parts;
  const isWhole = parts.length === 2 || parts.length === 3;
  if (!isWhole || !RUN_NAME.test(run ?? "") || !CHECKPOINT_NAME.test(name ?? "")) return undefined;
  if (!KINDS.includes(kind as CheckpointKind)) return undefined;
  return { run: run as string, kind: kind as CheckpointKind, name: name as string };
}

export function formatCheckpointPath({ run, kind, name }: CheckpointPath): string {
  return `tinker://${run}/${kind}/${name}`;
}

function checkpointsFolder(serverFolder: string): string {
  return join(serverFolder, "checkpoints");
}

export function runFolder(serverFolder: string, run: string): string {
  return join(checkpointsFolder(serverFolder), run.replaceAll(":", "_"));
}

export function checkpointFolder(serverFolder: string, { run, kind, name }: CheckpointPath): string {
  return join(runFolder(serverFolder, run), kind, name);
}

/** A complete checkpoint's description; undefined if there is none, it has expired, or its description is damaged. */
export function readCheckpoint(serverFolder: string, path: CheckpointPath): CheckpointInfo | undefined {
  const info = readJson<CheckpointInfo>(join(checkpointFolder(serverFolder, path), "checkpoint.json"));
  if (info?.formatVersion !== CHECKPOINT_VERSION || hasExpired(info)) return undefined;
  return info;
}

function hasExpired({ expiresAt }: CheckpointInfo): boolean {
  return expiresAt !== null && Date.parse(expiresAt) <= Date.now();
}

/** Of a path as text: whether its checkpoint is there. */
export function checkpointExists(serverFolder: string, path: string): boolean {
  const parsed = parseCheckpointPath(path);
  if (parsed === undefined) return false;
  return readCheckpoint(serverFolder, parsed) !== undefined || existsSync(archivePath(serverFolder, parsed));
}

/** Where SkyRL keeps a checkpoint. */
export function archivePath(serverFolder: string, { run, kind, name }: CheckpointPath): string {
  return join(runFolder(serverFolder, run), kind === "weights" ? "" : kind, `${name}.tar.gz`);
}

/** Deletes a checkpoint; tells whether there was one. */
export function deleteCheckpoint(serverFolder: string, path: string): boolean {
  const parsed = parseCheckpointPath(path);
  if (parsed === undefined) return false;
  const folder = [checkpointFolder(serverFolder, parsed), archivePath(serverFolder, parsed)].find((path) =>
    existsSync(path),
  );
  if (folder === undefined) return false;
  // Renamed first: a crash in the middle leaves rubbish, never a checkpoint that looks whole.
  const doomed = temporaryName(folder);
  renameSync(folder, doomed);
  rmSync(doomed, { recursive: true, force: true });
  return true;
}

/** Changes a checkpoint's description; undefined if there is none. */
export function changeCheckpoint(
  serverFolder: string,
  path: CheckpointPath,
  changes: Pick<Partial<CheckpointInfo>, "isPublic" | "expiresAt">,
): CheckpointInfo | undefined {
  const info = readCheckpoint(serverFolder, path);
  if (info === undefined) return undefined;
  const changed = { ...info, ...changes };
  const file = join(checkpointFolder(serverFolder, path), "checkpoint.json");
  writeFileWhole(file, `${JSON.stringify(changed, null, 2)}\n`);
  return changed;
}

/** Makes a complete checkpoint: `fill` writes its files into a temporary folder and returns the description. */
export function writeCheckpoint(
  serverFolder: string,
  path: CheckpointPath,
  fill: (temporaryFolder: string) => CheckpointInfo,
  options: { durable?: boolean } = {},
): CheckpointInfo {
  const folder = checkpointFolder(serverFolder, path);
  const temporary = temporaryName(folder);
  mkdirSync(temporary, { recursive: true });
  try {
    const info = fill(temporary);
    writeFileWhole(join(temporary, "checkpoint.json"), `${JSON.stringify(info, null, 2)}\n`, options);
    deleteCheckpoint(serverFolder, formatCheckpointPath(path));
    renameSync(temporary, folder);
    if (options.durable !== false) syncFolder(dirname(folder));
    return info;
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw error;
  }
}

/** A checkpoint under another path, whole or not at all. Returns its description; undefined if there is no such source. */
export function copyCheckpoint(
  serverFolder: string,
  source: CheckpointPath,
  run: string,
  changes: Pick<CheckpointInfo, "at" | "expiresAt">,
): CheckpointInfo | undefined {
  const info = readCheckpoint(serverFolder, source);
  if (info === undefined) return undefined;
  const copy: CheckpointInfo = { ...info, run, isPublic: false, ...changes };
  return writeCheckpoint(serverFolder, copy, (folder) => {
    for (const file of Object.keys(info.files))
      cpSync(join(checkpointFolder(serverFolder, source), file), join(folder, file));
    return copy;
  });
}

export function writeRun(serverFolder: string, info: RunInfo): void {
  const path = join(runFolder(serverFolder, info.run), "run.json");
  writeFileWhole(path, `${JSON.stringify(info, null, 2)}\n`);
}

export function readRun(serverFolder: string, run: string): RunInfo | undefined {
  return readJson<RunInfo>(join(runFolder(serverFolder, run), "run.json"));
}

/** Runs in order of creation. */
export function listRuns(serverFolder: string): readonly RunInfo[] {
  return entriesOf(checkpointsFolder(serverFolder))
    .map((entry) => readJson<RunInfo>(join(checkpointsFolder(serverFolder), entry, "run.json")))
    .filter((info): info is RunInfo => info !== undefined)
    .sort((a, b) => compare(a.createdAt, b.createdAt) || compare(a.run, b.run));
}

/** Complete checkpoints of a run in order of time. */
export function listCheckpoints(serverFolder: string, run: string): readonly CheckpointInfo[] {
  return KINDS.flatMap((kind) =>
    entriesOf(join(runFolder(serverFolder, run), kind)).map((name) =>
      readCheckpoint(serverFolder, { run, kind, name }),
    ),
  )
    .filter((info): info is CheckpointInfo => info !== undefined)
    .sort((a, b) => compare(a.at, b.at) || compare(a.name, b.name));
}

/** Removes what crashes left half-written or half-deleted, unnamed sampler weights, and what has expired. */
export function sweepCheckpoints(serverFolder: string): void {
  for (const run of entriesOf(checkpointsFolder(serverFolder)))
    for (const kind of [...KINDS, UNNAMED_FOLDER]) {
      const parent = join(checkpointsFolder(serverFolder), run, kind);
      for (const name of entriesOf(parent)) {
        const info = readJson<CheckpointInfo>(join(parent, name, "checkpoint.json"));
        const isRubbish = name.endsWith(".tmp") || kind === UNNAMED_FOLDER;
        if (isRubbish || (info && hasExpired(info))) rmSync(join(parent, name), { recursive: true, force: true });
      }
    }
}

/** Sampler weights that live as long as their session lie here, beside the kinds. */
export const UNNAMED_FOLDER = "unnamed";

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function readJson<T>(path: string): T | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as T;
  } catch {
    return undefined;
  }
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
