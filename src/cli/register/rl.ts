/** Commands on what reinforcement learning leaves: rollouts, regrade, eval, run, deployment, rollback. */
import { Option } from "commander";
import type { RollbackFlags } from "../commands/deployment.ts";
import type { RegradeFlags } from "../commands/regrade.ts";
import type { RolloutFlags } from "../commands/rollouts.ts";
import type { FinishFlags } from "../commands/run.ts";
import type { EvalFlags } from "../evals.ts";
import { bindSpecOptions, nonNegative, repeat, type SpecOptions, share, wholeNumber } from "../options.ts";
import type { Register } from "../register.ts";
import type { RemoteFlags } from "../remote.ts";
import { bindEnvironmentOptions } from "./environment.ts";
import { bindRemoteOptions } from "./server.ts";

const registerEval: Register = (program, run) => {
  const command = bindSpecOptions(program.command("eval"))
    .summary("measure checkpoints on tasks")
    .description(
      "In a project: makes the spec's evals, or those that are named, and shows how they came out; what was measured before is not sampled anew. With --dataset: measures a run, a checkpoint or a base model on tasks, without an eval in the spec. Exits with 1 where a threshold is not met.",
    )
    .argument("[names...]", "evals of the spec (default: all)")
    .option("--fresh", "measure anew what was measured before")
    .option(
      "--dataset <file>",
      "without an eval in the spec: tasks as JSONL, CSV or Parquet, hf://…, https://…, s3://…, gsm8k, or -",
    )
    .addOption(
      new Option("--run <run>", "run of the spec, also with a step: agent@40, agent@best").conflicts("checkpoint"),
    )
    .option("--checkpoint <path>", "tinker://… instead of a run")
    .option("--model <model>", "builtin:tiny, a model folder, or with --base-url a name")
    .option("--base-url <url>", "a running Tinker server")
    .option("--server <name>", "server of the spec, where it has several");
  bindEnvironmentOptions(command);
  command
    .option("--tasks <n>", "so many tasks (default: all)", wholeNumber(1))
    .option("--samples <n>", "answers to each task (default: 1)", wholeNumber(1))
    .option("--max-tokens <n>", "longest answer in tokens (default: 512)", wholeNumber(1))
    .option("--temperature <t>", "0 takes the likeliest token each time (default: 1)", nonNegative)
    .option("--top-p <p>", "sample from the likeliest tokens up to this mass (default: 1)", share)
    .option("--stop <text>", "text that ends an answer; may be repeated", repeat)
    .option("--seed <n>", "for the same answers again (default: 0)", wholeNumber(0))
    .option("--min-reward <x>", "the mean reward that passes", nonNegative)
    .action((names: string[], flags: EvalFlags) =>
      run(async (context) => (await import("../commands/eval.ts")).evaluate(context, names, flags)),
    );
};

const registerRollouts: Register = (program, run) => {
  bindSpecOptions(program.command("rollouts"))
    .summary("look at what was answered, and what it was worth")
    .description("Shows answers of a run's step, or of an eval, with rewards, notes and faults.")
    .argument("<name>", "a run, or an eval as eval.NAME")
    .option("--step <n>", "of this step (default: the last; of an eval: its own measurement)", wholeNumber(0))
    .addOption(new Option("--worst <k>", "so many with the lowest rewards").argParser(wholeNumber(1)).conflicts("best"))
    .option("--best <k>", "so many with the highest rewards", wholeNumber(1))
    .option("--task <task>", "only of this task: its row from 0, or a Harbor task's name")
    .option("--lost", "only those that were lost to faults")
    .option("--limit <n>", "at most so many (default: 5; all with --export)", wholeNumber(1))
    .option("--export <dir>", "write them as ATIF trajectories, a folder each as Harbor lays out trials")
    .option("--tokens", "with token ids and log-probabilities in what is exported")
    .action((name: string, flags: RolloutFlags) =>
      run(async (context) => (await import("../commands/rollouts.ts")).rollouts(context, name, flags)),
    );
};

const registerRegrade: Register = (program, run) => {
  bindSpecOptions(program.command("regrade"))
    .summary("score saved rollouts with the grader of now")
    .description(
      "After a grader was changed: what it would have made of the answers that a run has saved. Needs no server and changes no record.",
    )
    .argument("<run>", "name or address of the run")
    .addOption(new Option("--step <n>", "only this step").argParser(wholeNumber(1)).conflicts("steps"))
    .option("--steps <range>", "only these: 10..20, 10.. or ..20")
    .option("-o, --output <file>", "write the regraded rollouts as JSONL")
    .action((name: string, flags: RegradeFlags) =>
      run(async (context) => (await import("../commands/regrade.ts")).regrade(context, name, flags)),
    );
};

const registerRun: Register = (program, run) => {
  const command = program.command("run").summary("look at runs, accept a step as final").description("Looks at runs.");
  bindRemoteOptions(command.command("list"))
    .summary("list runs that were started, or those of a server")
    .action((flags: RemoteFlags) =>
      run(async (context) => (await import("../commands/run.ts")).runList(context, flags)),
    );
  bindRemoteOptions(command.command("info"))
    .summary("what is known of a run")
    .argument("<run>", "name or address of the run; with --base-url its id on the server")
    .action((name: string, flags: RemoteFlags) =>
      run(async (context) => (await import("../commands/run.ts")).runInfo(context, name, flags)),
    );
  bindSpecOptions(command.command("finish"))
    .summary("accept a kept checkpoint as the run's last")
    .description(
      "Ends a run at an earlier step: the checkpoint there counts as its final one, and no plan extends it to its full length. The next apply saves what is missing of it.",
    )
    .argument("<run>", "name or address of the run")
    .requiredOption("--at <step>", "a step of which a checkpoint is kept", wholeNumber(1))
    .action((name: string, flags: FinishFlags) =>
      run(async (context) => (await import("../commands/run.ts")).runFinish(context, name, flags)),
    );
};

const registerDeployment: Register = (program, run) => {
  const command = program
    .command("deployment")
    .summary("see where deployments point")
    .description("Looks at deployments.");
  bindSpecOptions(command.command("list"))
    .summary("where each points, since when, and why one is held")
    .action((flags: Partial<SpecOptions>) =>
      run(async (context) => (await import("../commands/deployment.ts")).deploymentList(context, flags)),
    );
};

const registerRollback: Register = (program, run) => {
  bindSpecOptions(program.command("rollback"))
    .summary("move a deployment back to where it pointed before")
    .description(
      "Moves the pointer to an earlier place of its history. It stays there until the spec's checkpoint is another one.",
    )
    .argument("<deployment>", "name or address of the deployment")
    .option("--to <n>", "place of its history, as `rlcli deployment list` numbers them", wholeNumber(1))
    .option("-y, --auto-approve", "do not ask")
    .action((name: string, flags: RollbackFlags) =>
      run(async (context) => (await import("../commands/deployment.ts")).rollback(context, name, flags)),
    );
};

export const RL_COMMANDS: readonly Register[] = [
  registerEval,
  registerRollouts,
  registerRegrade,
  registerRun,
  registerDeployment,
  registerRollback,
];
