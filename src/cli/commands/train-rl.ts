/** `rlcli train rl`: reinforcement learning without a spec file. It stands for one, and runs through the same plan and apply. */
import { fail, messageOf } from "../../diagnostic.ts";
import { lossNamed } from "../../losses/registry.ts";
import { type EnvironmentFlags, environmentBlock, tasksSource } from "../adhoc/environment.ts";
import { checkLoss } from "../adhoc/loss-guard.ts";
import { blockOf, datasetIdentity, doAdhoc, type WorkFlags } from "../adhoc/work.ts";
import { adhocServer } from "../adhoc.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { type PredecessorRunFlags, rendererKwargs } from "../predecessor.ts";

/** How it is trained, whatever the environment. */
export interface RlFlags extends WorkFlags, PredecessorRunFlags {
  readonly model?: string;
  readonly baseUrl?: string;
  /** What the server at --base-url is, for the check of the loss. */
  readonly backend?: string;
  readonly loss: string;
  readonly lossStrategy?: string;
  readonly lossConfig?: string;
  readonly clipLow?: number;
  readonly clipHigh?: number;
  readonly beta?: number;
  readonly deltaLow?: number;
  readonly deltaHigh?: number;
  readonly steps?: number;
  readonly epochs?: number;
  readonly groupSize?: number;
  readonly groupsPerBatch?: number;
  readonly substeps?: number;
  readonly minibatches?: number;
  readonly advantage?: string;
  readonly normalize?: string;
  readonly maxTokens?: number;
  readonly temperature?: number;
  readonly topP?: number;
  readonly stop?: readonly string[];
  readonly lr?: number;
  readonly loraRank?: number;
  readonly seed?: number;
  readonly klPenalty?: number;
  readonly maxStepsOffPolicy?: number;
  readonly saveEvery?: number;
}

export interface TrainRlFlags extends EnvironmentFlags, RlFlags {
  readonly evalEvery?: number;
  readonly evalDataset?: string;
  readonly evalTasks?: number;
  readonly evalSamples?: number;
}

export async function trainReinforced(context: CommandContext, flags: TrainRlFlags): Promise<ExitCode> {
  const tasks = await tasksSource(context, flags.dataset, "train");
  const { model, baseUrl, env } = flags;
  const identity = {
    dataset: datasetIdentity(context, flags.dataset, tasks),
    env,
    model: model ?? null,
    baseUrl: baseUrl ?? null,
  };
  const body = await specOf(context, flags, tasks);
  if (!flags.emitSpec && baseUrl !== undefined) await checkLoss(context, { ...flags, baseUrl });
  const next = (file: string) =>
    [
      `Look at what it answered: rlcli rollouts train --worst 3 -f ${file}`,
      `Try it:                   rlcli sample train -f ${file} --prompt "…"`,
    ].join("\n");
  return doAdhoc(context, { verb: "train rl", body, identity, next }, flags);
}

async function specOf(context: CommandContext, flags: TrainRlFlags, tasks: string): Promise<object> {
  const loss = lossBlock(flags);
  const server = await adhocServer(context, flags);
  const evaluation = await evalBlocks(context, flags);
  return blockOf({
    server,
    datasets: { tasks: { source: tasks, rows: "tasks" }, ...evaluation.datasets },
    environments: { tasks: environmentBlock(context, flags, "tasks"), ...evaluation.environments },
    losses: loss === undefined ? undefined : { loss },
    runs: { train: runBlock(flags, loss === undefined ? flags.loss : "loss") },
    evals: evaluation.evals,
  });
}

/** The run, on the environment `tasks`. */
export function runBlock(flags: RlFlags, loss: string): object {
  return blockOf({
    type: "rl",
    environment: "tasks",
    loss,
    steps: flags.steps,
    epochs: flags.epochs,
    group_size: flags.groupSize,
    groups_per_batch: flags.groupsPerBatch,
    substeps: flags.substeps,
    minibatches: flags.minibatches,
    advantage: flags.advantage,
    normalize: flags.normalize,
    max_tokens: flags.maxTokens,
    temperature: flags.temperature,
    top_p: flags.topP,
    stop: flags.stop,
    learning_rate: flags.lr,
    lora_rank: flags.loraRank,
    seed: flags.seed,
    kl_penalty: flags.klPenalty,
    max_steps_off_policy: flags.maxStepsOffPolicy,
    save_every: flags.saveEvery,
    template_kwargs: rendererKwargs(flags.renderer),
  });
}

/** The loss as a block where anything but its name is said. Fails with RL9003 for options that it lacks. */
export function lossBlock(flags: RlFlags): Record<string, unknown> | undefined {
  const options = {
    ...configOf(flags.lossConfig),
    ...blockOf({
      clip_low_threshold: flags.clipLow,
      clip_high_threshold: flags.clipHigh,
      beta: flags.beta,
      delta_low: flags.deltaLow,
      delta_high: flags.deltaHigh,
    }),
  };
  const known = lossNamed(flags.loss)?.options.map(({ name }) => name) ?? [];
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const has = known.length > 0 ? `It has ${known.join(", ")}.` : "It has none.";
    fail("RL9003", `The loss ${flags.loss} has no option \`${name}\`. ${has}`);
  }
  const block = blockOf({ type: flags.loss, ...options, strategy: flags.lossStrategy });
  return Object.keys(block).length > 1 ? block : undefined;
}

function configOf(text: string | undefined): Record<string, unknown> {
  if (text === undefined) return {};
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    return fail("RL9003", `--loss-config takes a JSON object: ${messageOf(error)}.`);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  return fail("RL9003", `--loss-config takes a JSON object with the loss's options, not \`${text}\`.`);
}

interface EvalBlocks {
  readonly datasets?: object;
  readonly environments?: object;
  readonly evals?: object;
}

/** The eval that looks on, over tasks of its own where there are some. */
async function evalBlocks(context: CommandContext, flags: TrainRlFlags): Promise<EvalBlocks> {
  const { evalEvery, evalDataset, evalTasks, evalSamples, maxTokens, temperature, topP, stop } = flags;
  if (evalEvery === undefined || evalEvery === 0) {
    const idle = (["evalDataset", "evalTasks", "evalSamples"] as const).find((flag) => flags[flag] !== undefined);
    const option = idle?.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
    if (option !== undefined) fail("RL9003", `--${option} does nothing without --eval-every.`);
    return {};
  }
  const apart = evalDataset ?? (flags.dataset === "gsm8k" ? "gsm8k" : undefined);
  const evals = {
    tasks: blockOf({
      checkpoint: "train",
      environment: apart === undefined ? "tasks" : "held_out",
      every: evalEvery,
      tasks: evalTasks,
      samples: evalSamples,
      max_tokens: maxTokens,
      temperature,
      top_p: topP,
      stop,
    }),
  };
  if (apart === undefined) return { evals };
  return {
    datasets: { held_out: { source: await tasksSource(context, apart, "test"), rows: "tasks" } },
    environments: { held_out: environmentBlock(context, flags, "held_out") },
    evals,
  };
}
