/**
 * The table of commands. Registering one is cheap; its module is imported when it runs, so that start-up pays only for
 * what it uses.
 */
import { type Command, Option } from "commander";
import type { InitFlags } from "./commands/init.ts";
import type { CommandContext, ExitCode } from "./context.ts";
import { TEMPLATE_NAMES } from "./init/templates.ts";
import { bindSpecOptions, repeat, type SpecOptions } from "./options.ts";
import { registerCompletion } from "./register/completion.ts";
import { DATA_COMMANDS, FORMAT_NAMES } from "./register/data.ts";
import { registerEnv } from "./register/env.ts";
import { LOOK_COMMANDS } from "./register/look.ts";
import { RL_COMMANDS } from "./register/rl.ts";
import { SERVE_COMMANDS } from "./register/serve.ts";
import { SERVER_COMMANDS } from "./register/server.ts";
import { registerTrain } from "./register/train.ts";
import { WORK_COMMANDS } from "./register/work.ts";

/** Runs a command's body with its context and hands its exit code on. */
export type Run = (body: (context: CommandContext) => Promise<ExitCode>) => Promise<void>;
export type Register = (program: Command, run: Run) => void;

const registerInit: Register = (program, run) => {
  program
    .command("init")
    .summary("start a new spec from a template")
    .description(
      "Writes a new spec and its data from a template. Asks on a terminal what the options do not say; looks for GPUs, for Docker and for logs in the folder. Never overwrites a file.",
    )
    .argument("[dir]", "folder to write to", ".")
    .addOption(
      new Option(
        "--template <name>",
        "what to start from (default: the one that the folder is named for, else quickstart)",
      ).choices(TEMPLATE_NAMES),
    )
    .option("--name <project>", "name of the project (default: the folder's)")
    .option("--model <model>", "builtin:tiny, a model folder or a hub name")
    .addOption(
      new Option("--backend <backend>", "what trains (default: fsdp where there are GPUs, else embedded)").choices([
        "embedded",
        "jax",
        "fsdp",
        "megatron",
      ]),
    )
    .addOption(new Option("--base-url <url>", "a Tinker server that already runs").conflicts("backend"))
    .option("--logs <file>", "sft-from-traces: logs to learn from, a file or a glob; may be repeated", repeat)
    .addOption(new Option("--format <format>", "sft-from-traces: form of the logs").choices(FORMAT_NAMES))
    .option("-y, --yes", "ask nothing: take what was found")
    .action((dir: string, options: InitFlags) =>
      run(async (context) => (await import("./commands/init.ts")).init(context, dir, options)),
    );
};

const registerValidate: Register = (program, run) => {
  bindSpecOptions(program.command("validate"))
    .summary("check the spec")
    .description("Reads the spec and prints everything that is wrong with it.")
    .action((options: Partial<SpecOptions>) =>
      run(async (context) => (await import("./commands/validate.ts")).validate(context, options)),
    );
};

const registerExplain: Register = (program, run) => {
  program
    .command("explain")
    .summary("explain a field, a loss, a metric or a diagnostic")
    .description(
      "Explains a block (`run`), a field (`run.learning_rate`), a loss (`gspo`), a metric (`metric reward/mean`) or a diagnostic code (`RL1101`).",
    )
    .argument("[topic...]", "block, field, loss, metric or code; without one, what there is to explain")
    .action((topic: readonly string[]) =>
      run(async (context) =>
        (await import("./commands/explain.ts")).explain(context, topic.length > 0 ? topic.join(" ") : undefined),
      ),
    );
};

/** In the order of `rlcli --help`: as a user meets them. */
export const COMMANDS: readonly Register[] = [
  registerInit,
  registerValidate,
  ...WORK_COMMANDS,
  registerTrain,
  ...LOOK_COMMANDS,
  ...SERVER_COMMANDS,
  ...RL_COMMANDS,
  ...DATA_COMMANDS,
  ...SERVE_COMMANDS,
  registerEnv,
  registerExplain,
  registerCompletion,
];
