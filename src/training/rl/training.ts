/** Runs of reinforcement learning: an environment's tasks, sampled answers, and a loss over their rewards. */
import { diagnostic, fail } from "../../diagnostic.ts";
import { LOSSES, lossNamed } from "../../losses/registry.ts";
import type { RlSettings, RunOrder } from "../../run-record.ts";
import { loadRenderer } from "../../tokens/load.ts";
import type { RunRecord } from "../record.ts";
import type { TrainingDeps } from "../run.ts";
import type { Training } from "../work.ts";
import { trainRl } from "./loop.ts";
import { closeParts, openParts, RlRun } from "./rl-run.ts";

export const reinforcement: Training<RlSettings, RlRun> = {
  open,
  train: trainRl,
  close: (run) => closeParts(run.parts),
};

async function open(order: RunOrder<RlSettings>, deps: TrainingDeps, record: RunRecord): Promise<RlRun> {
  checkLoss(order);
  record.phase("opening the environment");
  const onHost = (text: string): void =>
    record.emit({
      t: "warning",
      diagnostic: diagnostic("RL7301", text, { address: order.address, severity: "warning" }),
    });
  const parts = await openParts(order, deps, await loadRenderer(deps.modelFolder), onHost);
  if (parts.environment.count > 0) return new RlRun(order, deps, record, parts);
  await closeParts(parts);
  return fail("RL8001", `The environment of ${order.address} has no tasks.`, { address: order.address });
}

function checkLoss({ settings, address }: RunOrder<RlSettings>): void {
  if (lossNamed(settings.loss.type)?.runs.includes("rl") && settings.loss.type !== "ppo_critic") return;
  const usable = LOSSES.filter((loss) => loss.runs.includes("rl") && loss.of === "policy").map((loss) => loss.name);
  const detail = `The loss ${settings.loss.type} is not one for reinforcement learning. Use one of ${usable.join(", ")}.`;
  fail("RL8010", detail, { address });
}
