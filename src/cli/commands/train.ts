/** `rlcli train sl`: a supervised run without a spec file. It stands for one, and runs through the same plan and apply. */
import { createWriteStream, existsSync, mkdirSync, renameSync, rmSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import { pipeline } from "node:stream/promises";
import { fail } from "../../diagnostic.ts";
import { digestFile, shortDigest } from "../../digest.ts";
import { temporaryName } from "../../files.ts";
import { adhocServer, adhocSpec, specText } from "../adhoc.ts";
import type { CommandContext, ExitCode } from "../context.ts";
import { EXIT } from "../context.ts";
import { applyFresh } from "./apply.ts";

export interface TrainFlags {
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
  readonly dryRun?: boolean;
  readonly emitSpec?: boolean;
  readonly detach?: boolean;
}

export async function trainSupervised(context: CommandContext, flags: TrainFlags): Promise<ExitCode> {
  const dataset = flags.dataset === "-" ? await spool(context) : datasetPath(context, flags.dataset);
  const body = await specOf(context, flags, dataset);
  if (flags.emitSpec) {
    context.out(specText(body));
    return EXIT.done;
  }
  // Steps and the like are outside a run's identity, so that more of them extend the run that the same command began.
  const { dataset: data, model, baseUrl } = flags;
  const identity = {
    dataset: data === "-" ? dataset : resolve(context.cwd, data),
    model: model ?? null,
    baseUrl: baseUrl ?? null,
  };
  const { file } = adhocSpec(context, "train sl", body, identity);
  const options = { files: [file], variables: {}, variableFiles: [], targets: [], replace: [], destroy: false };
  if (flags.dryRun) {
    const { makePlan, showPlan } = await import("./plan.ts");
    const { open, planned } = await makePlan(context, options);
    context.report(planned.diagnostics);
    if (planned.isValid) showPlan(context, open, planned);
    return planned.isValid ? EXIT.done : EXIT.failed;
  }
  const code = await applyFresh(context, options, { autoApprove: true, detach: flags.detach ?? false });
  if (code === EXIT.done && !context.isJson && !flags.detach) {
    context.out(`\nTry it: rlcli sample train -f ${shown(context, file)} --prompt "…"\n`);
  }
  return code;
}

async function specOf(context: CommandContext, flags: TrainFlags, dataset: string): Promise<object> {
  const server = await adhocServer(context, flags);
  const run: Record<string, unknown> = { type: "sl", dataset: "data" };
  const set = (key: string, value: unknown): void => {
    if (value !== undefined) run[key] = value;
  };
  set("steps", flags.steps);
  set("epochs", flags.epochs);
  set("learning_rate", flags.lr);
  set("batch_size", flags.batchSize);
  set("batch_tokens", flags.batchTokens);
  set("max_length", flags.maxLength);
  set("lora_rank", flags.loraRank);
  set("save_every", flags.saveEvery);
  set("test_size", flags.testSize);
  set("train_on", flags.trainOn);
  set("seed", flags.seed);
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

function datasetPath(context: CommandContext, name: string): string {
  const path = isAbsolute(name) ? name : join(context.cwd, name);
  if (!existsSync(path))
    fail("RL9009", `The dataset ${name} does not exist. Give a JSONL file, or - to read from standard input.`);
  return path;
}

/** Standard input as a file named by its content, so that the same rows are the same dataset. */
async function spool(context: CommandContext): Promise<string> {
  if (process.stdin.isTTY) fail("RL9003", "--dataset - reads rows from standard input, and nothing is piped in.");
  const folder = join(context.cwd, ".rlcli", "adhoc", "spool");
  mkdirSync(folder, { recursive: true });
  const temporary = temporaryName(join(folder, "stdin"));
  try {
    await pipeline(process.stdin, createWriteStream(temporary));
    const path = join(folder, `${shortDigest(await digestFile(temporary))}.jsonl`);
    renameSync(temporary, path);
    return path;
  } finally {
    rmSync(temporary, { force: true });
  }
}

function shown(context: CommandContext, path: string): string {
  return path.startsWith(`${context.cwd}/`) ? path.slice(context.cwd.length + 1) : path;
}
