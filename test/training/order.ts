/** A small run for tests: rows on disk, an order, and dependencies over a fake server. */
import { mkdirSync, mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { digestBytes } from "../../src/digest.ts";
import type { RunOrder, SupervisedSettings } from "../../src/run-record.ts";
import type { TrainingDeps } from "../../src/training/training.ts";
import type { FakeServer } from "../tinker/fake-server.ts";

export const tinyFolder = fileURLToPath(new URL("../fixtures/tiny-qwen3", import.meta.url));

export const SETTINGS: SupervisedSettings = {
  type: "sl",
  learning_rate: 0.05,
  schedule: { type: "constant", warmup_steps: 0, final_ratio: 0 },
  optimizer: {},
  batch_size: 4,
  max_length: 256,
  train_on: "all_assistant",
  normalize: "token",
  seed: 1,
  lora_rank: 0,
  test_size: 0,
  template_kwargs: {},
  loss: { type: "cross_entropy", options: {} },
};

export const rowOf = (i: number): string =>
  JSON.stringify({
    messages: [
      { role: "user", content: `question ${i} ${"?".repeat(i % 5)}` },
      { role: "assistant", content: `answer ${i * 7} ${"word ".repeat(i % 4)}` },
    ],
  });

export interface OrderOptions extends Omit<Partial<RunOrder>, "settings" | "dataset"> {
  readonly rows?: readonly string[];
  readonly settings?: Partial<SupervisedSettings>;
}

/** Writes the rows into a new folder and returns the order to train on them. */
export function makeOrder({ rows, settings, ...rest }: OrderOptions = {}): { order: RunOrder; folder: string } {
  const base = mkdtempSync(join(tmpdir(), "rlcli-run-"));
  const path = join(base, "rows.jsonl");
  const text = (rows ?? Array.from({ length: 22 }, (_, i) => rowOf(i))).map((row) => `${row}\n`).join("");
  writeFileSync(path, text);
  const folder = join(base, "record");
  mkdirSync(folder);
  const order: RunOrder = {
    formatVersion: 1,
    project: "test",
    address: "run.agent",
    generation: digestBytes("generation"),
    incarnation: 1,
    length: { steps: 12 },
    save_every: 5,
    eval_every: 0,
    keep_last: 1,
    model: "toy",
    server: "server.default",
    dataset: { address: "dataset.rows", digest: digestBytes(text), path },
    ...rest,
    settings: { ...SETTINGS, ...settings },
  };
  writeFileSync(join(folder, "spec.json"), JSON.stringify(order));
  return { order, folder };
}

export function makeDeps(server: FakeServer, folder: string, more: Partial<TrainingDeps> = {}): TrainingDeps {
  return {
    folder,
    connect: async () => ({ url: server.url, token: "tml-test", serverRun: server.life }),
    modelFolder: tinyFolder,
    stop: new AbortController().signal,
    now: () => new Date(),
    ...more,
  };
}
