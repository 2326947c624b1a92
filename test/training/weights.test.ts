// A row's own weight: scales its loss under both normalisations, at 0 takes it out, and changes no bit where it is absent or 1.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, onTestFinished, test } from "vitest";
import { digestBytes } from "../../src/digest.ts";
import type { SupervisedSettings } from "../../src/run-record.ts";
import { loadRenderer } from "../../src/tokens/load.ts";
import { buildBatch } from "../../src/training/batch.ts";
import { RowStore } from "../../src/training/rows.ts";

const MODEL = fileURLToPath(new URL("../fixtures/tiny-qwen3", import.meta.url));

const messages = [
  { role: "user", content: "q" },
  { role: "assistant", content: "r" },
];

/** Datums of rows that differ in nothing but their weight. */
async function datumsOf(...weights: (number | undefined)[]) {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-weights-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "rows.jsonl");
  const rows = weights.map(
    (weight) => `${JSON.stringify(weight === undefined ? { messages } : { messages, weight })}\n`,
  );
  writeFileSync(path, rows.join(""));
  const settings = {
    train_on: "all_assistant",
    max_length: 100,
    template_kwargs: {},
    test_size: 0,
  } as Partial<SupervisedSettings>;
  const digest = digestBytes(rows.join(""));
  const store = await RowStore.open({
    path,
    datasetDigest: digest,
    textDigest: digest,
    settings: settings as SupervisedSettings,
    renderer: await loadRenderer(MODEL),
    folder,
  });
  onTestFinished(() => store.close());
  return store.training.flatMap((row) => [...store.read(row)]);
}

const total = (weights: Float32Array) => weights.reduce((sum, w) => sum + w, 0);

test.each(["token", "sequence"] as const)("%s: a row of half the weight counts half", async (normalize) => {
  const { data } = buildBatch(await datumsOf(undefined, 0.5), normalize);
  const [whole, half] = data.map((d) => total(d.lossInputs.weights as Float32Array));
  expect(half! / whole!).toBeCloseTo(0.5, 6);
  expect(whole! + half!).toBeCloseTo(1, 6);
});

test.each(["token", "sequence"] as const)("%s: a weight of 1 changes no bit", async (normalize) => {
  const plain = buildBatch(await datumsOf(undefined, undefined), normalize);
  expect(buildBatch(await datumsOf(1, undefined), normalize).digest).toBe(plain.digest);
});

test("a row of weight 0 trains nothing", async () => {
  expect(await datumsOf(0, undefined)).toHaveLength(1);
});
