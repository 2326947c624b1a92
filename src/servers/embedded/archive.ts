/** What is inside a checkpoint's folder, and how it is checked when it is read again. */
import { existsSync } from "node:fs";
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
  writeCheckpoint,
} from "../checkpoints.ts";
import type { ComputeSettings, SaveOrder } from "./messages.ts";
import { encodeTensors, readTensors, type Tensor, type Tensors } from "./safetensors.ts";
import { type OptimizerState, RequestError } from "./trainer.ts";

export const MODEL_FILE = "model.safetensors";
export const OPTIMIZER_FILE = "optimizer.safetensors";

export interface Archive {
  readonly order: SaveOrder;
  readonly lora: LoraSettings | null;
  /** Optimizer updates in the weights. */
  readonly step: number;
  /** By file name. */
  readonly files: Readonly<Record<string, Tensors>>;
}

/** Writes a checkpoint whole: complete and synced, or not there. */
export function writeArchive(
  { serverFolder, baseModel }: Pick<ComputeSettings, "serverFolder" | "baseModel">,
  path: CheckpointPath,
  { order, lora, step, files }: Archive,
): CheckpointInfo {
  return writeCheckpoint(serverFolder, path, (folder) => {
    const digests: Record<string, Digest> = {};
    let sizeBytes = 0;
    for (const [file, tensors] of Object.entries(files)) {
      const bytes = encodeTensors(tensors);
      writeFileWhole(join(folder, file), bytes);
      digests[file] = digestBytes(bytes);
      sizeBytes += bytes.byteLength;
    }
    const { userMetadata, expiresAt } = order;
    const at = new Date().toISOString();
    const described = { baseModel, lora, step, sizeBytes, files: digests, userMetadata, expiresAt };
    return { formatVersion: CHECKPOINT_VERSION, ...path, at, ...described };
  });
}

/** Unnamed sampler weights have no description. */
export function isNamed(folder: string): boolean {
  return existsSync(join(folder, "checkpoint.json"));
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
