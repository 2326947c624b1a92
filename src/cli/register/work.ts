/** Commands that plan and do: plan, apply, destroy, lock. */
import type { Command } from "commander";
import type { ApplyFlags } from "../commands/apply.ts";
import type { LockFlags } from "../commands/lock.ts";
import type { PlanCommandFlags } from "../commands/plan.ts";
import { bindSpecOptions, repeat, wholeNumber } from "../options.ts";
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
    .option("--markdown", "print for a comment on a pull request: details folded, no longer than one may be")
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
    .option(
      "--smoke",
      "try everything out small, on tiny models and for two steps; keeps nothing, exits with 3 if incomplete",
    )
    .option("--parallelism <n>", "changes under way at once", wholeNumber(1), 10)
    .action((plan: string | undefined, flags: ApplyFlags & { readonly smoke?: boolean }) =>
      run(async (context) =>
        flags.smoke
          ? (await import("../commands/smoke.ts")).smoke(context, plan, flags)
          : (await import("../commands/apply.ts")).apply(context, plan, flags),
      ),
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
      "Writes rlcli.lock: the files that each name on a hub (hf://…) or at an address (https://…, s3://…) stands for. Commit it with the spec. Adds what is missing and leaves out what nothing needs; with --upgrade, asks again.",
    )
    .argument("[address]", "with --upgrade: only this block, for example dataset.gsm8k")
    .option("--upgrade", "move names to what they stand for now")
    .action((address: string | undefined, flags: LockFlags) =>
      run(async (context) => (await import("../commands/lock.ts")).lock(context, address, flags)),
    );
};

export const WORK_COMMANDS: readonly Register[] = [registerPlan, registerApply, registerDestroy, registerLock];
