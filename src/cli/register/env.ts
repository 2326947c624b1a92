/** Commands that try tasks in sandboxes without training: env list, check, run, play, gc. */
import { type Command, Option } from "commander";
import type { CheckFlags, RunFlags } from "../commands/env.ts";
import type { GcFlags } from "../commands/env-gc.ts";
import type { TaskFlags } from "../environment.ts";
import { anyNumber, bindSpecOptions, repeat, wholeNumber } from "../options.ts";
import type { Register } from "../register.ts";

const TASKS = "a folder of tasks, or a dataset's name@version (default: the spec's environment)";

/** Which tasks, and on which daemon; shared with `train harbor`. */
export function bindTaskOptions(command: Command): Command {
  return command
    .option("--registry <file>", "where datasets are looked up by name: a registry.json by path or address")
    .option("--mirror <dir>", "folder with datasets by name, looked into before any registry")
    .option("--task-filter, --include <glob>", "only tasks of this name; may be repeated", repeat)
    .option("--exclude <glob>", "without tasks of this name; may be repeated", repeat)
    .option("--limit, --first <n>", "the first so many of what is left", wholeNumber(1))
    .option("--concurrency <n>", "sandboxes at once (default: 8)", wholeNumber(1))
    .option(
      "--host <address>",
      "the Docker daemon (default: DOCKER_HOST, else the local socket); may be repeated",
      repeat,
    )
    .addOption(new Option("--network <policy>", "instead of what tasks say").choices(["task", "none", "public"]))
    .addOption(new Option("--security <profile>", "rights of containers").choices(["compat", "hardened"]))
    .option("--keep-failed", "leave containers of trials that failed, to be looked at");
}

function bindTasks(command: Command): Command {
  bindSpecOptions(command.argument("[tasks]", TASKS)).option(
    "--environment <name>",
    "of the spec, where it has several of type harbor",
  );
  return bindTaskOptions(command);
}

export const registerEnv: Register = (program, run) => {
  const env = program
    .command("env")
    .summary("try tasks in sandboxes without training")
    .description("Tries Harbor tasks in containers of a Docker daemon, without training.");
  bindTasks(env.command("list"))
    .summary("list the tasks there are")
    .action((tasks: string | undefined, flags: TaskFlags) =>
      run(async (context) => (await import("../commands/env.ts")).envList(context, tasks, flags)),
    );
  bindTasks(env.command("check").alias("test"))
    .summary("check that tasks can be solved, and not by doing nothing")
    .description(
      "Runs each task's own solution, which must reach --min-oracle, and nothing at all, which must not. Exits with 1 where a task fails: find that out before GPUs are at work.",
    )
    .option("--min-oracle <x>", "the reward that a solution must reach", anyNumber, 1)
    .action((tasks: string | undefined, flags: CheckFlags) =>
      run(async (context) => (await import("../commands/env.ts")).envCheck(context, tasks, flags)),
    );
  bindTasks(env.command("run"))
    .summary("try one task and print its rewards")
    .requiredOption("--task <name>", "which task")
    .addOption(
      new Option("--agent <who>", "the task's own solution, or nobody").choices(["oracle", "nop"]).default("oracle"),
    )
    .option("--command <line>", "instead of an agent: run this as it would; may be repeated", repeat)
    .option("-o, --out <dir>", "write artifacts and the tests' logs here")
    .action((tasks: string | undefined, flags: RunFlags & { task: string }) =>
      run(async (context) => (await import("../commands/env.ts")).envRun(context, tasks, flags)),
    );
  bindTasks(env.command("play").alias("shell"))
    .summary("do a task yourself with the agent's tool")
    .option("--task <name>", "which task, where there are several")
    .action((tasks: string | undefined, flags: TaskFlags & { task?: string }) =>
      run(async (context) => (await import("../commands/env-play.ts")).envPlay(context, tasks, flags)),
    );
  env
    .command("gc")
    .summary("remove what is left behind of sandboxes")
    .description(
      "Removes containers whose process is gone or whose lifetime is over, and shows the others. Never touches what rlcli did not make.",
    )
    .option("--host <address>", "the Docker daemon (default: DOCKER_HOST, else the local socket)")
    .option("--dry-run", "only say what would go")
    .option("--kept", "also containers that were left to be looked at")
    .option("--all", "also those of other machines and of processes at work")
    .option("--images", "also images of tasks, which are then built anew")
    .option("--older-than <duration>", "with --images: only those that are older, for example 7d")
    .action((flags: GcFlags) => run(async (context) => (await import("../commands/env-gc.ts")).envGc(context, flags)));
};
