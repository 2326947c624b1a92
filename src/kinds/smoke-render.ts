/** Whether the real model's chat template takes what is to be trained on: rendered, not trained. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Diagnostic, diagnostic, RlcliError } from "../diagnostic.ts";
import type { EnvironmentOrder } from "../environment-order.ts";
import { taskMessages } from "../environments/prompt.ts";
import { openTasks } from "../environments/tasks.ts";
import type { SpecNode } from "../spec.ts";
import { loadRenderer, textDigest } from "../tokens/load.ts";
import { RowStore } from "../training/rows.ts";
import { settingsOf } from "./run/settings.ts";
import { SMOKE_ROWS } from "./smoke.ts";

/** Rows of a supervised run as its real model would be trained on them: refusals are warnings, nothing left to train an error. */
export async function renderRows(node: SpecNode, path: string, modelFolder: string): Promise<readonly Diagnostic[]> {
  const settings = settingsOf(node, undefined);
  if (settings.type !== "sl") return [];
  const folder = mkdtempSync(join(tmpdir(), "rlcli-rows-"));
  const { address } = node;
  try {
    const digest = await textDigest(modelFolder);
    const rows = await RowStore.open({
      path,
      datasetDigest: digest,
      textDigest: digest,
      settings: { ...settings, test_size: 0 },
      renderer: await loadRenderer(modelFolder),
      folder,
    });
    rows.close();
    return rows.warnings().map((warning) => ({ ...warning, address }));
  } catch (error) {
    if (!(error instanceof RlcliError)) throw error;
    return error.diagnostics.map(({ code, detail }) => diagnostic(code, `Of the real model: ${detail}`, { address }));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Prompts of an environment's first tasks under a model's template. Faults are errors at `address`. */
export async function renderPrompts(
  environment: EnvironmentOrder,
  modelFolder: string,
  template_kwargs: Readonly<Record<string, unknown>>,
): Promise<readonly Diagnostic[]> {
  const renderer = await loadRenderer(modelFolder);
  const tasks = await openTasks(environment.tasks.path);
  try {
    for (let task = 0; task < Math.min(tasks.count, SMOKE_ROWS); task++) {
      const messages = taskMessages(environment, tasks.read(task));
      renderer.encode({ messages }, { add_generation_prompt: true, template_kwargs });
    }
    return [];
  } catch (error) {
    if (!(error instanceof RlcliError)) throw error;
    const { address } = environment;
    return error.diagnostics.map(({ code, detail }) => diagnostic(code, `Of the real model: ${detail}`, { address }));
  } finally {
    tasks.close();
  }
}
