/** Writing checkpoints, and checking them when they are read again. `layout.ts` says how weights lie in them. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "../../diagnostic.ts";
import { type Digest, digestBytes, digestFile } from "../../digest.ts";
import { writeFileWhole } from "../../files.ts";
import {
  CHECKPOINT_VERSION,
  type CheckpointInfo,
  type CheckpointPath,
  type LoraSettings,
  type ModelRole,
  writeCheckpoint,
} from "../checkpoints.ts";
import type { ArchiveFiles } from "./layout.ts";
import type { ComputeSettings, SaveOrder } from "./messages.ts";
import { readTensors, type Tensor, type Tensors } from "./safetensors.ts";
import { type OptimizerState, RequestError } from "./trainer.ts";

export const OPTIMIZER_FILE = "optimizer.safetensors";

export interface Archive {
  readonly order: SaveOrder;
  readonly lora: LoraSettings | null;
  readonly role: ModelRole;
  /** Optimizer updates in the weights. */
  readonly step: number;
  /** Names and contents. */
  readonly files: ArchiveFiles;
}

/** Writes a checkpoint whole: complete and synced, or not there. */
export function writeArchive(
  { serverFolder, baseModel }: Pick<ComputeSettings, "serverFolder" | "baseModel">,
  path: CheckpointPath,
  { order, lora, role, step, files }: Archive,
): CheckpointInfo {
  return writeCheckpoint(serverFolder, path, (folder) => {
    const digests: Record<string, Digest> = {};
    let sizeBytes = 0;
    for (const [file, bytes] of files) {
      writeFileWhole(join(folder, file), bytes);
      digests[file] = digestBytes(bytes);
      sizeBytes += bytes.byteLength;
    }
    const { userMetadata, expiresAt } = order;
    const at = new Date().toISOString();
    const described = { baseModel, lora, role, step, sizeBytes, files: digests, userMetadata, expiresAt };
    return { formatVersion: CHECKPOINT_VERSION, ...path, at, ...described };
  });
}

/** Throws RequestError. */
export async function readInfo(folder: string): Promise<CheckpointInfo> {
  try {
    return JSON.parse(await readFile(join(folder, "checkpoint.json"), "utf8")) as CheckpointInfo;
  } catch (error) {
    throw new RequestError(`The checkpoint in ${folder} cannot be read: ${messageOf(error)}.`);
  }
}

/** A data file of a checkpoint, after its digest has been compared with what was written. */
export async function readVerified(folder: string, file: string, info: CheckpointInfo): Promise<Tensors> {
  const path = join(folder, file);
  const expected = info.files[file];
  let found: Digest;
  try {
    found = await digestFile(path);
  } catch (error) {
    throw new RequestError(`The checkpoint's file ${path} cannot be read: ${messageOf(error)}.`);
  }
  if (found !== expected)
    throw new RequestError(`The checkpoint's file ${path} is damaged: its content is not what was saved.`);
  return readTensors(path);
}

/** Both moments in one file, told apart by a prefix of their names. */
export function joinMoments({ first, second }: OptimizerState): Tensors {
  const prefixed = (prefix: string, tensors: Tensors) =>
    [...tensors].map(([name, tensor]): [string, Tensor] => [`${prefix}${name}`, tensor]);
  return new Map([...prefixed("first.", first), ...prefixed("second.", second)]);
}

export function splitMoments(all: Tensors): Pick<OptimizerState, "first" | "second"> {
  const part = (prefix: string): Tensors =>
    new Map(
      [...all]
        .filter(([name]) => name.startsWith(prefix))
        .map(([name, tensor]): [string, Tensor] => [name.slice(prefix.length), tensor]),
    );
  return { first: part("first."), second: part("second.") };
}
