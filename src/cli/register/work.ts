/** Commands that plan and do: plan, apply, destroy, lock, train. */
import { type Command, Option } from "commander";
import type { ApplyFlags } from "../commands/apply.ts";
import type { LockFlags } from "../commands/lock.ts";
import type { PlanCommandFlags } from "../commands/plan.ts";
import type { TrainFlags } from "../commands/train.ts";
import { bindSpecOptions, positive, repeat, wholeNumber } from "../options.ts";
import type { Register } from "../register.ts";

/** Commands that plan may add names to rlcli.lock. */
const bindLock = (command: Command): Command =>
  command
    .option("--locked", "fail where rlcli.lock lacks a name, rather than adding it (default where CI is set)")
    .option("--no-locked", "add what rlcli.lock lacks, also where CI is set");

const registerPlan: Register = (program, run) => {
  bindLock(bindSpecOptions(program.command("plan")))
    .summary("show what apply would do, and why")
    .description(
      "Compares the spec with what was applied and with what is really there. Changes nothing; only rlcli.lock is given the names it lacks.",
    )
    .option("--target <address>", "plan only this and what it needs; may be repeated", repeat)
    .option("--replace <address>", "plan to make this anew; may be repeated", repeat)
    .option("--destroy", "plan the end of everything")
    .option("-o, --out <file>", "save the plan, to apply exactly this")
    .option("--detailed-exitcode", "exit with 2 if there are changes")
    .action((flags: PlanCommandFlags) =>
      run(async (context) => (await import("../commands/plan.ts")).plan(context, flags)),
    );
};

const registerApply: Register = (program, run) => {
  bindLock(bindSpecOptions(program.command("apply")))
    .summary("make it so")
    .description(
      "Plans, asks, and carries the plan out. A first Ctrl-C stops at the end of a step with a checkpoint, a second at once; either way the next apply resumes.",
    )
    .argument("[plan]", "a saved plan; refused if what it was made from has changed")
    .option("--target <address>", "apply only this and what it needs; may be repeated", repeat)
    .option("--replace <address>", "make this anew; may be repeated", repeat)
    .option("-y, --auto-approve", "do not ask")
    .option("--detach", "leave training running in the background")
    .option("--parallelism <n>", "changes under way at once", wholeNumber(1), 10)
    .action((plan: string | undefined, flags: ApplyFlags) =>
      run(async (context) => (await import("../commands/apply.ts")).apply(context, plan, flags)),
    );
};

const registerDestroy: Register = (program, run) => {
  bindSpecOptions(program.command("destroy"))
    .summary("stop servers and forget runs; weights stay unless --weights")
    .description(
      "Stops the spec's servers and forgets what was applied. Checkpoints are kept under the retention policy.",
    )
    .option("--target <address>", "destroy only this; may be repeated", repeat)
    .option("--weights", "delete checkpoints and run records too")
    .option("-y, --auto-approve", "do not ask")
    .action((flags: ApplyFlags) =>
      run(async (context) => (await import("../commands/apply.ts")).destroy(context, flags)),
    );
};

const registerLock: Register = (program, run) => {
  bindSpecOptions(program.command("lock"))
    .summary("pin what moving names stand for")
    .description(
      "Writes rlcli.lock: the commit and the files that each name on a hub (hf://…) stands for. Commit it with the spec. Adds what is missing and leaves out what nothing needs; with --upgrade, asks again.",
    )
    .argument("[address]", "with --upgrade: only this block, for example dataset.gsm8k")
    .option("--upgrade", "move names to what they stand for now")
    .action((address: string | undefined, flags: LockFlags) =>
      run(async (context) => (await import("../commands/lock.ts")).lock(context, address, flags)),
    );
};

const registerTrain: Register = (program, run) => {
  const train = program
    .command("train")
    .summary("train without a spec file")
    .description("Trains without a spec file.");
  train
    .command("sl")
    .summary("supervised fine-tuning on conversations")
    .description(
      "Fine-tunes a model on conversations, one JSON object with `messages` a line. The same command again resumes.",
    )
    .requiredOption("--dataset <file>", "conversations as JSONL, or - for standard input")
    .option("--model <model>", "builtin:tiny, a model folder, or with --base-url a name")
    .option("--base-url <url>", "a running Tinker server instead of the embedded one")
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
    .option("--seed <n>", "order of batches (default: 0)", wholeNumber(0))
    .option("--dry-run", "show the plan only")
    .option("--emit-spec", "print the spec that this command stands for")
    .option("--detach", "leave it running in the background")
    .action((flags: TrainFlags) =>
      run(async (context) => (await import("../commands/train.ts")).trainSupervised(context, flags)),
    );
};

export const WORK_COMMANDS: readonly Register[] = [
  registerPlan,
  registerApply,
  registerDestroy,
  registerLock,
  registerTrain,
];
