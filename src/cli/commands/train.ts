/** `rlcli train sl`: a supervised run without a spec file. It stands for one, and runs through the same plan and apply. */
import { blockOf, datasetFile, datasetIdentity, doAdhoc, type WorkFlags } from "../adhoc/work.ts";
import { adhocServer } from "../adhoc.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { type PredecessorRunFlags, rendererKwargs } from "../predecessor.ts";

export interface TrainFlags extends WorkFlags, PredecessorRunFlags {
  readonly dataset: string;
  readonly format: string;
  readonly model?: string;
  readonly baseUrl?: string;
  readonly epochs?: number;
  readonly steps?: number;
  readonly lr?: number;
  readonly batchSize?: number;
  readonly batchTokens?: number;
  readonly maxLength?: number;
  readonly loraRank?: number;
  readonly saveEvery?: number;
  readonly testSize?: number;
  readonly trainOn?: string;
  readonly seed?: number;
}

export async function trainSupervised(context: CommandContext, flags: TrainFlags): Promise<ExitCode> {
  const dataset = await datasetFile(context, flags.dataset);
  const { model, baseUrl } = flags;
  const identity = {
    dataset: datasetIdentity(context, flags.dataset, dataset),
    model: model ?? null,
    baseUrl: baseUrl ?? null,
  };
  const body = await specOf(context, flags, dataset);
  const next = (file: string) => `Try it: rlcli sample train -f ${file} --prompt "…"`;
  return doAdhoc(context, { verb: "train sl", body, identity, next }, flags);
}

async function specOf(context: CommandContext, flags: TrainFlags, dataset: string): Promise<object> {
  const server = await adhocServer(context, flags);
  const run = blockOf({
    type: "sl",
    dataset: "data",
    steps: flags.steps,
    epochs: flags.epochs,
    learning_rate: flags.lr,
    batch_size: flags.batchSize,
    batch_tokens: flags.batchTokens,
    max_length: flags.maxLength,
    lora_rank: flags.loraRank,
    save_every: flags.saveEvery,
    test_size: flags.testSize,
    train_on: flags.trainOn,
    seed: flags.seed,
    template_kwargs: rendererKwargs(flags.renderer),
  });
  return {
    server,
    datasets: {
      data: {
        import: { format: flags.format, from: [dataset], min_messages: 2, keep_tools: true, keep_thinking: true },
      },
    },
    runs: { train: run },
  };
}
