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
/** Working folders: conversations that teach to count, and conversations that teach to answer at all. */
let counting: string;
let answering: string;
beforeAll(async () => {
  if (!cookbookPython) return;
  counting = workingFolder(Array.from({ length: 24 }, (_, i) => [`Say the number ${i}.`, `The number is ${i}.`]));
  answering = workingFolder(Array.from({ length: 640 }, (_, i) => conversation(i)));
  writeProblems();
  const settings = { model: MODEL, modelFolder: join(counting, MODEL), slots: 8, bodyLimitBytes: 64_000_000 };
  server = await startTestServer({ ...settings, holdMs: 30_000 });
});
afterAll(async () => {
  if (!cookbookPython) return;
  await server.server.close();
  for (const one of [server.folder, counting, answering]) rmSync(one, { recursive: true, force: true });
});

const QUESTION = "What is 0 + 1?";
const SUFFIX = "Provide a numerical answer, written inside \\boxed{}.";

const lines = (rows: readonly unknown[]) => `${rows.map((row) => JSON.stringify(row)).join("\n")}\n`;

/** As rl_loop asks, after an example of some length. Right and wrong in turn, so that groups of samples will hold both. */
function conversation(i: number): string[] {
  const example = `Here is an example of how it is done: ${"step by step, ".repeat(2 + (i % 13))}and so on.`;
  const answer = `\\boxed{${1 + ((i >> 1) % 2)}}`;
  return [`How is it done? ${SUFFIX}`, example, `${QUESTION} ${SUFFIX}`, answer];
}

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
  const rows = Array.from({ length: 8 }, () => ({ question: QUESTION, answer: "It is 1.\n#### 1" }));
  const card = "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: train\n    path: train.jsonl\n---\n";
  writeDataset(answering, "openai/gsm8k", { "train.jsonl": lines(rows), "README.md": card });
}

type Row = Readonly<Record<string, any>>;

const readRows = (file: string): Row[] =>
  readFileSync(file, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Row);

interface RecipeRun {
  readonly folder: string;
  readonly recipe: "sl_loop" | "rl_loop";
  readonly settings: Readonly<Record<string, string | number>>;
  /** What an interrupted run would have left in its log: the recipe goes on from there. */
  readonly checkpoint?: Row;
}

async function runRecipe({ folder, recipe, settings, checkpoint }: RecipeRun) {
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
      const run = { folder: counting, recipe: "sl_loop", settings } as const;
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

  test.skipIf(!cookbookPython).each(["importance_sampling", "gspo"])(
    "rl_loop samples, grades and trains to a higher reward with %s",
    async (loss_fn) => {
      const teaching = { batch_size: 8, learning_rate: 0.03, save_every: 0 };
      const taught = await runRecipe({ folder: answering, recipe: "sl_loop", settings: teaching });
      console.log(taught.metrics.map((m) => m.train_mean_nll).filter((_, i) => i % 8 === 7));
      const { state_path } = taught.checkpoints.at(-1)!;
      const checkpoint = { name: "000000", batch: 0, state_path };
      const settings = { batch_size: 2, group_size: 8, max_tokens: 40, max_steps: 6, save_every: 0, loss_fn };
      const run = { folder: answering, recipe: "rl_loop", checkpoint } as const;
      const { metrics, checkpoints } = await runRecipe({ ...run, settings: { ...settings, learning_rate: 0.01 } });
      console.log(metrics);
      const rewards = metrics.map((row) => row["reward/total"] as number);
      expect(rewards).toHaveLength(4);
      expect(rewards[0]).toBeGreaterThan(0);
      expect(rewards[0]).toBeLessThan(1);
      expect(rewards[3]).toBeGreaterThan(rewards[0]!);
      expect(metrics.some((row) => (row.grad_norm as number) > 0)).toBe(true);
      expect(checkpoints.at(-1)).toMatchObject({ name: "final" });
    },
    TIMEOUT_MS,
  );
});
