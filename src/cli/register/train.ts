/** `train sl`, `train rl` and `train harbor`: runs without a spec file. */
import { type Command, Option } from "commander";
import type { TrainFlags } from "../commands/train.ts";
import type { TrainHarborFlags } from "../commands/train-harbor.ts";
import type { TrainRlFlags } from "../commands/train-rl.ts";
import { anyNumber, nonNegative, positive, repeat, share, wholeNumber } from "../options.ts";
import { bindHarborFlags, bindRunFlags, duration } from "../predecessor.ts";
import type { Register } from "../register.ts";
import { bindTaskOptions } from "./env.ts";
import { bindEnvironmentOptions } from "./environment.ts";

/** What is trained, and where. */
const bindServer = (command: Command): Command =>
  command
    .option("--model <model>", "builtin:tiny, a model folder, or with --base-url a name")
    .option("--base-url <url>", "a running Tinker server instead of the embedded one");

/** The same, for losses that depend on what the server is. */
const bindKnownServer = (command: Command): Command =>
  bindServer(command).addOption(
    new Option("--backend <kind>", "what the server at --base-url is (default: it is asked)").choices([
      "embedded",
      "jax",
      "fsdp",
      "megatron",
      "hosted",
    ]),
  );

/** How far the command goes. */
const bindHow = (command: Command): Command =>
  command
    .option("--dry-run", "show the plan only")
    .option("--emit-spec", "print the spec that this command stands for")
    .option("--detach", "leave it running in the background");

export const registerTrain: Register = (program, run) => {
  const train = program
    .command("train")
    .summary("train without a spec file")
    .description("Trains without a spec file.");
  const command = bindRunFlags(train.command("sl"))
    .summary("supervised fine-tuning on conversations")
    .description(
      "Fine-tunes a model on conversations, one JSON object with `messages` a line. The same command again resumes.",
    )
    .requiredOption(
      "--dataset <file>",
      "conversations as JSONL, also at an https:// or s3:// address, or - for standard input",
    );
  bindServer(command)
    .addOption(
      new Option("--format <format>", "shape of the dataset").choices(["auto", "messages", "openai"]).default("auto"),
    )
    .option("--epochs <n>", "passes over the data (default: 1)", wholeNumber(1))
    .addOption(
      new Option("--steps <n>", "optimizer steps, instead of --epochs").argParser(wholeNumber(1)).conflicts("epochs"),
    )
    .option("--lr <rate>", "learning rate (default: 0.0001)", positive)
    .option("--batch-size <n>", "conversations a step (default: 8)", wholeNumber(1))
    .option("--batch-tokens <n>", "most tokens a step", wholeNumber(1))
    .option("--max-length <n>", "longest conversation in tokens (default: 2048)", wholeNumber(1))
    .option("--lora-rank <n>", "adapter rank, 0 for all weights (default: 32; 0 for built-in models)", wholeNumber(0))
    .option("--save-every <n>", "steps between checkpoints (default: 20)", wholeNumber(1))
    .option("--test-size <n>", "conversations held out (default: 0)", wholeNumber(0))
    .addOption(
      new Option("--train-on <turns>", "turns to train on").choices(["all_assistant", "last_assistant", "all"]),
    )
    .option("--seed <n>", "order of batches (default: 0)", wholeNumber(0));
  bindHow(command).action((flags: TrainFlags) =>
    run(async (context) => (await import("../commands/train.ts")).trainSupervised(context, flags)),
  );
  registerTrainRl(train, run);
  registerTrainHarbor(train, run);
};

const LOSS_NAMES = ["importance_sampling", "ppo", "cispo", "dro", "gspo", "dppo"];

const registerTrainRl: Register = (train, run) => {
  const command = bindRunFlags(train.command("rl"))
    .summary("reinforcement learning on tasks and a grader")
    .description(
      "Trains a model on the rewards of its own answers to tasks. The same command again resumes; more --steps extend.",
    )
    .option(
      "--dataset <file>",
      "tasks as JSONL, CSV or Parquet, hf://…, https://…, s3://…, gsm8k, or - for standard input",
      "gsm8k",
    );
  bindKnownServer(command);
  bindEnvironmentOptions(command);
  bindLoss(command);
  bindRlSteps(command);
  bindRlEvals(command);
  bindHow(command).action((flags: TrainRlFlags) =>
    run(async (context) => (await import("../commands/train-rl.ts")).trainReinforced(context, flags)),
  );
};

const registerTrainHarbor: Register = (train, run) => {
  const command = bindHarborFlags(bindRunFlags(train.command("harbor")))
    .summary("reinforcement learning on tasks in sandboxes")
    .description(
      "Trains a model as an agent with a bash tool, on Harbor tasks in containers of a Docker daemon: a task's own tests are the reward. The same command again resumes; more --steps extend.",
    )
    .option("--dataset <tasks>", "a folder of tasks, or a dataset's name@version", "terminal-bench@2.0");
  bindKnownServer(command);
  bindTaskOptions(command)
    .option("--system <text>", "instead of the usual system message")
    .option("--max-turns <n>", "answers in one step of a task (default: 8)", wholeNumber(1))
    .addOption(
      new Option("--tool-format <form>", "how the model writes a call (default: auto)").choices([
        "auto",
        "hermes",
        "qwen_xml",
        "llama",
        "bash_block",
      ]),
    )
    .option("--command-timeout <duration>", "for one command (default: 120s)", duration)
    .option("--agent-timeout <duration>", "for one attempt, over the task's own limit", duration)
    .option("--max-trajectory-tokens <n>", "longest conversation in tokens (default: 32768)", wholeNumber(256))
    .option("--output-bytes <n>", "shown of each stream of a command (default: 16384)", wholeNumber(256))
    .addOption(
      new Option("--on-limit <how>", "what an attempt is worth that a limit ended (default: penalty)").choices([
        "penalty",
        "grade",
      ]),
    )
    .option("--limit-reward <x>", "with --on-limit penalty (default: -0.1)", anyNumber)
    .option("--reward-key <name>", "which of several rewards counts");
  bindLoss(command);
  bindRlSteps(command);
  bindHow(command).action((flags: TrainHarborFlags) =>
    run(async (context) => (await import("../commands/train-harbor.ts")).trainHarbor(context, flags)),
  );
};

function bindLoss(command: Command): void {
  command
    .addOption(new Option("--loss <name>", "the loss").choices(LOSS_NAMES).default("importance_sampling"))
    .addOption(
      new Option("--loss-strategy <how>", "fused: the server computes it; two_pass: rlcli, by a forward pass").choices([
        "fused",
        "two_pass",
        "auto",
      ]),
    )
    .option("--loss-config <json>", "options of the loss by the spec's names, as one JSON object")
    .option("--clip-low <ratio>", "ppo, cispo, gspo: ratios below are clipped", nonNegative)
    .option("--clip-high <ratio>", "ppo, cispo, gspo: ratios above are clipped", nonNegative)
    .option("--beta <x>", "dro: weight of the squared log-ratio", nonNegative)
    .option("--delta-low <x>", "dppo: how far a probability may fall", nonNegative)
    .option("--delta-high <x>", "dppo: how far a probability may rise", nonNegative);
}

function bindRlSteps(command: Command): void {
  command
    .addOption(new Option("--max-steps, --steps <n>", "steps, instead of --epochs").argParser(wholeNumber(1)))
    .addOption(new Option("--epochs <n>", "passes over the tasks (default: 1)").argParser(positive).conflicts("steps"))
    .option("--group-size <n>", "answers to each task (default: 8)", wholeNumber(1))
    .option("--batch-size, --groups-per-batch <n>", "tasks of a step (default: 16)", wholeNumber(1))
    .option("--substeps <n>", "optimizer updates of a step (default: 1)", wholeNumber(1))
    .option("--minibatches <n>", "forward_backward calls of a substep (default: 1)", wholeNumber(1))
    .addOption(
      new Option("--advantage <mode>", "what a reward is compared with (default: center)").choices([
        "center",
        "std",
        "leave_one_out",
        "none",
      ]),
    )
    .addOption(
      new Option("--normalize <by>", "what the loss is a mean over (default: sequence)").choices(["token", "sequence"]),
    )
    .option("--max-tokens <n>", "longest answer in tokens (default: 512)", wholeNumber(1))
    .option("--temperature <t>", "of sampling (default: 1)", nonNegative)
    .option("--top-p <p>", "sample from the likeliest tokens up to this mass (default: 1)", share)
    .option("--stop <text>", "text that ends an answer; may be repeated", repeat)
    .option("--lr <rate>", "learning rate (default: 0.0001)", positive)
    .option("--lora-rank <n>", "adapter rank, 0 for all weights (default: 32; 0 for built-in models)", wholeNumber(0))
    .option("--seed <n>", "of tasks' order and sampling (default: 0)", wholeNumber(0))
    .option("--kl-penalty <x>", "weight of the KL penalty to the start weights (default: 0)", nonNegative)
    .option("--max-steps-off-policy <n>", "how many steps old sampling weights may be (default: 0)", wholeNumber(0))
    .option("--save-every <n>", "steps between checkpoints (default: 20)", wholeNumber(0));
}

function bindRlEvals(command: Command): void {
  command
    .option("--eval-every <n>", "measure before the first step and every so many (default: 0, not)", wholeNumber(0))
    .option("--eval-dataset <file>", "tasks to measure on (default: those trained on)")
    .option("--eval-tasks <n>", "so many of them (default: all)", wholeNumber(1))
    .option("--eval-samples <n>", "answers to each (default: 1)", wholeNumber(1));
}
