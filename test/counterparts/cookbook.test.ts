/**
 * Two recipes of tinker-cookbook against the embedded server, unmodified: sl_loop and rl_loop, run as their users run
 * them. Names of models and datasets are folders below the working folder, which is how the recipes' own libraries find
 * them without a hub. Skipped by name where the cookbook is not installed.
 */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startTestServer, type TestServer, TOKEN } from "../servers/embedded/server.ts";
import { TINY_QWEN3 } from "../servers/embedded/support.ts";
import { cookbookPython, runCommand } from "./environment.ts";

/** The cookbook knows by this name which chat template to render with. */
const MODEL = "Qwen/Qwen3-8B";
const TIMEOUT_MS = 240_000;

let server: TestServer;
/** The recipes' working folder, with the model and both datasets. */
let folder: string;
beforeAll(async () => {
  if (!cookbookPython) return;
  folder = workingFolder(Array.from({ length: 24 }, (_, i) => [`Say the number ${i}.`, `The number is ${i}.`]));
  writeProblems();
  const settings = { model: MODEL, modelFolder: join(folder, MODEL), slots: 8, bodyLimitBytes: 64_000_000 };
  server = await startTestServer({ ...settings, holdMs: 30_000 });
});
afterAll(async () => {
  if (!cookbookPython) return;
  await server.server.close();
  for (const one of [server.folder, folder]) rmSync(one, { recursive: true, force: true });
});

const lines = (rows: readonly unknown[]) => `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`;

/** Has the model and, under the name that sl_loop asks for, conversations. */
function workingFolder(conversations: readonly (readonly string[])[]): string {
  const folder = mkdtempSync(join(tmpdir(), "rlcli-cookbook-"));
  cpSync(TINY_QWEN3, join(folder, MODEL), { recursive: true });
  const rows = conversations.map((turns) => ({
    messages: turns.map((content, i) => ({ role: i % 2 === 0 ? "user" : "assistant", content })),
  }));
  writeDataset(folder, "HuggingFaceH4/no_robots", { "train.jsonl": lines(rows) });
  return folder;
}

function writeDataset(folder: string, name: string, files: Readonly<Record<string, string>>): void {
  const target = join(folder, name);
  mkdirSync(target, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(target, file), text);
}

function writeProblems(): void {
  const rows = Array.from({ length: 8 }, (_, i) => ({ question: `What is ${i} + 1?`, answer: `So:\n#### ${i + 1}` }));
  const card = "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: train\n    path: train.jsonl\n---\n";
  writeDataset(folder, "openai/gsm8k", { "train.jsonl": lines(rows), "README.md": card });
}

type Row = Readonly<Record<string, any>>;

const readRows = (file: string): Row[] =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);

interface RecipeRun {
  readonly recipe: "sl_loop" | "rl_loop";
  readonly settings: Readonly<Record<string, string | number>>;
  /** What an interrupted run would have left in its log: the recipe goes on from there. */
  readonly checkpoint?: Row;
}

async function runRecipe({ recipe, settings, checkpoint }: RecipeRun) {
  const logPath = mkdtempSync(join(folder, `log-${recipe}-`));
  if (checkpoint) writeFileSync(join(logPath, "checkpoints.jsonl"), lines([checkpoint]));
  const all = { base_url: server.server.url, model_name: MODEL, log_path: logPath, lora_rank: 32, ...settings };
  const words = Object.entries(all).map(([key, value]) => `${key}=${value}`);
  const run = await runCommand(cookbookPython as string, ["-m", `tinker_cookbook.recipes.${recipe}`, ...words], {
    cwd: folder,
    timeoutMs: TIMEOUT_MS,
    env: { TINKER_API_KEY: TOKEN, HF_HOME: join(folder, "hf"), HF_DATASETS_OFFLINE: "1" },
  });
  expect(run.code, `${run.stdout}\n${run.stderr}`.slice(-4000)).toBe(0);
  expect(server.faults).toEqual([]);
  return {
    metrics: readRows(join(logPath, "metrics.jsonl")),
    checkpoints: readRows(join(logPath, "checkpoints.jsonl")),
  };
}

describe("tinker-cookbook", () => {
  test.skipIf(!cookbookPython)(
    "sl_loop trains to a lower loss, saves, and goes on from what it saved as if it had not stopped",
    async () => {
      const settings = { batch_size: 4, learning_rate: 0.01, save_every: 3, max_steps: 5 };
      const run = { recipe: "sl_loop", settings } as const;
      const whole = await runRecipe(run);
      const losses = whole.metrics.map((row) => row.train_mean_nll as number);
      expect(losses).toHaveLength(5);
      expect(losses[4]).toBeLessThan(losses[0]! - 0.5);
      expect(whole.checkpoints.map(({ name }) => name)).toEqual(["000003", "final"]);
      expect(whole.checkpoints[1]).toMatchObject({
        state_path: expect.stringMatching(/^tinker:\/\/.+\/weights\/final$/),
        sampler_path: expect.stringMatching(/^tinker:\/\/.+\/sampler_weights\/final$/),
      });
      const resumed = await runRecipe({ ...run, checkpoint: whole.checkpoints[0]! });
      expect(resumed.metrics.map((row) => row.train_mean_nll)).toEqual(losses.slice(3));
    },
    TIMEOUT_MS,
  );

  test.skipIf(!cookbookPython)(
    "rl_loop samples groups, grades them and saves; a random model is never right, so there is nothing to train on",
    async () => {
      const settings = { batch_size: 2, group_size: 4, max_tokens: 12, max_steps: 2, save_every: 0, loss_fn: "gspo" };
      const { metrics, checkpoints } = await runRecipe({ recipe: "rl_loop", settings });
      expect(metrics.map((row) => row["reward/total"])).toEqual([0, 0]);
      expect(checkpoints.map(({ name }) => name)).toEqual(["final"]);
    },
    TIMEOUT_MS,
  );
});
