/** Supervised runs: rows of a dataset, rendered with the model's chat template, and a loss over given answers. */
import { fail } from "../diagnostic.ts";
import { LOSSES, lossNamed } from "../losses/registry.ts";
import type { RunOrder, SupervisedSettings } from "../run-record.ts";
import { loadRenderer, textDigest } from "../tokens/load.ts";
import { trainLineage } from "./loop.ts";
import type { RunRecord } from "./record.ts";
import { RowStore } from "./rows.ts";
import type { TrainingDeps } from "./run.ts";
import { SupervisedRun } from "./supervised-run.ts";
import type { Training } from "./work.ts";

export type { ServerConnection, TrainingDeps } from "./run.ts";

export const supervised: Training<SupervisedSettings, SupervisedRun> = {
  open,
  train: trainLineage,
  close: (run) => run.rows.close(),
};

async function open(
  order: RunOrder<SupervisedSettings>,
  deps: TrainingDeps,
  record: RunRecord,
): Promise<SupervisedRun | undefined> {
  checkLoss(order);
  record.phase("reading rows");
  const rows = await RowStore.open({
    path: order.dataset.path,
    datasetDigest: order.dataset.digest,
    textDigest: await textDigest(deps.modelFolder),
    settings: order.settings,
    renderer: await loadRenderer(deps.modelFolder),
    folder: deps.folder,
    signal: deps.stop,
    onProgress: (count) => record.phase("reading rows", `${count} so far`),
  }).catch((error: unknown) => {
    if (deps.stop.aborted && error === deps.stop.reason) return undefined;
    throw error;
  });
  if (!rows) return undefined;
  for (const warning of rows.warnings())
    record.emit({ t: "warning", diagnostic: { ...warning, address: order.address } });
  return new SupervisedRun(order, deps, record, rows);
}

function checkLoss({ settings, address }: RunOrder<SupervisedSettings>): void {
  if (lossNamed(settings.loss.type)?.runs.includes("sl")) return;
  const usable = LOSSES.filter((loss) => loss.runs.includes("sl")).map((loss) => loss.name);
  const detail = `The loss ${settings.loss.type} is not one for supervised runs. Use ${usable.join(" or ")}.`;
  fail("RL8010", detail, { address });
}
