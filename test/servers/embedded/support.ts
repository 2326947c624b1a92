import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach } from "vitest";
import { type Architecture, parseArchitecture } from "../../../src/servers/embedded/architecture.ts";
import type { Datum } from "../../../src/servers/embedded/batch.ts";
import { normals, streamOf } from "../../../src/servers/embedded/random.ts";
import { encodeTensors, type Tensor } from "../../../src/servers/embedded/safetensors.ts";
import { type Model, tensorShapes } from "../../../src/servers/embedded/weights.ts";

export const TINY_QWEN3 = new URL("../../fixtures/tiny-qwen3", import.meta.url).pathname;

/** `model_type` and sizes of a very small model; `changes` win. */
export function smallConfig(changes: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    model_type: "qwen3",
    vocab_size: 40,
    hidden_size: 16,
    intermediate_size: 24,
    num_hidden_layers: 2,
    num_attention_heads: 4,
    num_key_value_heads: 2,
    head_dim: 4,
    rms_norm_eps: 1e-6,
    rope_theta: 10000,
    max_position_embeddings: 64,
    tie_word_embeddings: true,
    eos_token_id: 1,
    ...changes,
  };
}

/** Random weights of a deviation that makes every part of the model matter. */
export function randomTensors(architecture: Architecture, seed = 1, deviation = 0.3): Map<string, Tensor> {
  const tensors = new Map<string, Tensor>();
  for (const [name, shape] of tensorShapes(architecture)) {
    const count = shape.reduce((product, side) => product * side, 1);
    const offset = name.includes("norm") ? 1 : 0;
    const data = normals(seed, streamOf(name), count).map((value) => value * deviation + offset);
    tensors.set(name, { shape, data });
  }
  return tensors;
}

export function smallModel(changes: Readonly<Record<string, unknown>> = {}, seed = 1): Model {
  const architecture = parseArchitecture(smallConfig(changes), {}, "small");
  return { architecture, tensors: randomTensors(architecture, seed) };
}

/** A training row of a whole sequence; weights are 1 unless given. */
export function datumOf(tokens: readonly number[], weights?: readonly number[]): Datum {
  return {
    tokens: Int32Array.from(tokens.slice(0, -1)),
    targets: Int32Array.from(tokens.slice(1)),
    tensors: { weights: Float32Array.from(weights ?? tokens.slice(1).map(() => 1)) },
  };
}

/** Pseudo-random tokens below `vocabSize`. */
export function tokensOf(length: number, seed: number, vocabSize = 40): number[] {
  return Array.from({ length }, (_, i) => Math.floor((normals(seed, i, 1)[0]! + 6) * 1e6) % vocabSize);
}

const folders: string[] = [];
afterEach(() => {
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

/** Removed after the test. */
export function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-test-"));
  folders.push(folder);
  return folder;
}

/** A copy of the tiny fixture whose files a test may damage. */
export function copyOfTinyQwen3(): string {
  const folder = join(temporaryFolder(), "model");
  cpSync(TINY_QWEN3, folder, { recursive: true });
  return folder;
}

export function writeModelFolder(config: Record<string, unknown>, tensors: ReadonlyMap<string, Tensor>): string {
  const folder = join(temporaryFolder(), "model");
  mkdirSync(folder);
  writeFileSync(join(folder, "config.json"), JSON.stringify(config));
  writeFileSync(join(folder, "model.safetensors"), encodeTensors(tensors));
  return folder;
}

export function readJsonFile(path: string): unknown {
  return JSON.parse(readFileSync(path, "utf8"));
}
