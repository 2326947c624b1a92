/** Commands that look at what is there: show, status, logs, output, state, checkpoint, prune. */

import type { PruneFlags } from "../commands/checkpoint.ts";
import type { LogsFlags } from "../commands/logs.ts";
import type { StopFlags } from "../commands/stop.ts";
import type { SupportFlags } from "../commands/support.ts";
import { bindSpecOptions, type SpecOptions, wholeNumber } from "../options.ts";
import type { Register } from "../register.ts";

const registerShow: Register = (program, run) => {
  bindSpecOptions(program.command("show"))
    .summary("show what was applied")
    .description("Shows the state: what was applied, with results.")
    .argument("[address]", "one resource, for example run.agent")
    .action((address: string | undefined, flags: Partial<SpecOptions>) =>
      run(async (context) => (await import("../commands/state.ts")).show(context, address, flags)),
    );
};

const registerStatus: Register = (program, run) => {
  bindSpecOptions(program.command("status"))
    .summary("show what runs now and how far it is")
    .description("Shows servers, datasets and runs as they are now. Starts nothing.")
    .action((flags: Partial<SpecOptions>) =>
      run(async (context) => (await import("../commands/status.ts")).status(context, flags)),
    );
};

const registerLogs: Register = (program, run) => {
  bindSpecOptions(program.command("logs"), { hasShort: false })
    .summary("print what a run's worker said and did")
    .description("Prints a run's log and progress.")
    .argument("[run]", "name or address of the run (default: the only one, or the only one at work)")
    .option("-f, --follow", "go on until the run ends")
    .option("--since <when>", "only what happened since: a duration such as 10m, or a time")
    .action((name: string | undefined, flags: LogsFlags) =>
      run(async (context) => (await import("../commands/logs.ts")).logs(context, name, flags)),
    );
};

const registerStop: Register = (program, run) => {
  bindSpecOptions(program.command("stop"))
    .summary("stop training that runs in the background")
    .description(
      "Asks the worker of a run to stop at the end of its step, with a checkpoint, and waits for it. The next apply resumes.",
    )
    .argument("[run]", "name or address of the run; all that are being worked on without one")
    .option("--now", "at once; steps after the last checkpoint are repeated")
    .action((name: string | undefined, flags: StopFlags) =>
      run(async (context) => (await import("../commands/stop.ts")).stop(context, name, flags)),
    );
};

const registerOutput: Register = (program, run) => {
  bindSpecOptions(program.command("output"))
    .summary("print results for other programs")
    .description("Prints checkpoint paths and final metrics of runs; one of them bare if it is named.")
    .argument("[name]", "for example run.agent.checkpoint")
    .action((name: string | undefined, flags: Partial<SpecOptions>) =>
      run(async (context) => (await import("../commands/state.ts")).output(context, name, flags)),
    );
};

const registerState: Register = (program, run) => {
  const state = program
    .command("state")
    .summary("look at and mend the state")
    .description("Looks at and mends the state.");
  bindSpecOptions(state.command("list"))
    .summary("list what is recorded")
    .action((flags: Partial<SpecOptions>) =>
      run(async (context) => (await import("../commands/state.ts")).stateList(context, flags)),
    );
  bindSpecOptions(state.command("show"))
    .summary("print one record as JSON")
    .argument("<address>", "for example run.agent")
    .action((address: string, flags: Partial<SpecOptions>) =>
      run(async (context) => (await import("../commands/state.ts")).stateShow(context, address, flags)),
    );
  bindSpecOptions(state.command("push"))
    .summary("put back a record that an apply could not store")
    .argument("<file>", "the recovery file that apply named")
    .action((file: string, flags: Partial<SpecOptions>) =>
      run(async (context) => (await import("../commands/state.ts")).statePush(context, file, flags)),
    );
  bindSpecOptions(state.command("taint"))
    .summary("have the next apply make it anew")
    .description(
      "Marks what is recorded, so that the next plan replaces it as --replace would. For somebody else's apply, in a pipeline for example.",
    )
    .argument("<address>", "for example run.agent")
    .action((address: string, flags: Partial<SpecOptions>) =>
      run(async (context) => (await import("../commands/state.ts")).stateTaint(context, address, true, flags)),
    );
  bindSpecOptions(state.command("untaint"))
    .summary("take a taint back")
    .argument("<address>", "for example run.agent")
    .action((address: string, flags: Partial<SpecOptions>) =>
      run(async (context) => (await import("../commands/state.ts")).stateTaint(context, address, false, flags)),
    );
};

const registerPrune: Register = (program, run) => {
  bindSpecOptions(program.command("prune"))
    .summary("delete what the retention policy does not keep")
    .description(
      "Says what would go and how many bytes, asks, and deletes. Final and best checkpoints and the last ones of each run stay.",
    )
    .option("--keep-generations <n>", "earlier generations to keep of each run (default: all)", wholeNumber(0))
    .option("--forgotten", "also all of runs that are no longer in the spec")
    .option("--dry-run", "only say what would go")
    .option("-y, --auto-approve", "do not ask")
    .action((flags: PruneFlags) =>
      run(async (context) => (await import("../commands/checkpoint.ts")).prune(context, flags)),
    );
};

const registerSupport: Register = (program, run) => {
  bindSpecOptions(program.command("support"))
    .summary("put what happened here into one file, without secrets")
    .description(
      "Writes a bundle for whoever is to help: versions, the spec, its diagnostics, the state, ends of journals, metrics and logs, and what `rlcli doctor` says. Secrets are masked, and rows, prompts and answers stay out.",
    )
    .option("-o, --output <file>", "where to write (default: rlcli-support-TIME.tar.gz here)")
    .option("--run <run>", "only this run")
    .option("--with-data", "also answers and the first rows of datasets")
    .action((flags: SupportFlags) =>
      run(async (context) => (await import("../commands/support.ts")).support(context, flags)),
    );
};

export const LOOK_COMMANDS: readonly Register[] = [
  registerStatus,
  registerLogs,
  registerStop,
  registerShow,
  registerOutput,
  registerPrune,
  registerState,
  registerSupport,
];
