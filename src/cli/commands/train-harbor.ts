/** `rlcli train harbor`: reinforcement learning on tasks in sandboxes, without a spec file. */

import { checkLoss } from "../adhoc/loss-guard.ts";
import { blockOf, doAdhoc } from "../adhoc/work.ts";
import { adhocServer } from "../adhoc.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { harborBlock, type TaskFlags } from "../environment.ts";
import { lossBlock, type RlFlags, runBlock } from "./train-rl.ts";

export interface TrainHarborFlags extends RlFlags, TaskFlags {
  readonly dataset: string;
  readonly maxTurns?: number;
  readonly toolFormat?: string;
  readonly commandTimeout?: string;
  readonly agentTimeout?: string;
  readonly maxTrajectoryTokens?: number;
  readonly outputBytes?: number;
  readonly onLimit?: string;
  readonly limitReward?: number;
  readonly rewardKey?: string;
  readonly system?: string;
}

export async function trainHarbor(context: CommandContext, flags: TrainHarborFlags): Promise<ExitCode> {
  const loss = lossBlock(flags);
  const environment = {
    ...harborBlock(context, flags.dataset, flags),
    ...blockOf({
      system: flags.system,
      max_turns: flags.maxTurns,
      tool_format: flags.toolFormat,
      command_timeout: flags.commandTimeout,
      agent_timeout: flags.agentTimeout,
      max_trajectory_tokens: flags.maxTrajectoryTokens,
      output_bytes: flags.outputBytes,
      on_limit: flags.onLimit,
      limit_reward: flags.limitReward,
      reward_key: flags.rewardKey,
    }),
  };
  const body = blockOf({
    server: await adhocServer(context, flags),
    environments: { tasks: environment },
    losses: loss === undefined ? undefined : { loss },
    runs: { train: runBlock(flags, loss === undefined ? flags.loss : "loss") },
  });
  const { model, baseUrl } = flags;
  if (!flags.emitSpec && baseUrl !== undefined) await checkLoss(context, { ...flags, baseUrl });
  const identity = { tasks: environment.tasks, model: model ?? null, baseUrl: baseUrl ?? null };
  const next = (file: string) => `Look at what it did: rlcli rollouts train --worst 3 -f ${file}`;
  return doAdhoc(context, { verb: "train harbor", body, identity, next }, flags);
}
