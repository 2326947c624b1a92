/** `rlcli stop`: asks the worker of a run to stop, as the first Ctrl-C of an attached apply does. */
import { nameOf } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import type { Observation } from "../../kind.ts";
import { kinds } from "../../kinds/registry.ts";
import { attachWorker, eventsOffset, readStatus } from "../../kinds/run/attach.ts";
import type { RunSeen } from "../../kinds/run/observe.ts";
import { didYouMean } from "../../suggest.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import { type OpenProject, planProject } from "../project.ts";

export interface StopFlags extends Partial<SpecOptions> {
  /** Without waiting for the end of the step. */
  readonly now?: boolean;
}

export const STOP_JSON_VERSION = 1;

export async function stop(context: CommandContext, name: string | undefined, flags: StopFlags): Promise<ExitCode> {
  const open = await openWith(context, flags);
  const working = await workersOf(context, open);
  const chosen =
    name === undefined
      ? [...working]
      : [...working].filter(([address]) => nameOf(address) === name.replace(/^run\./, ""));
  if (name !== undefined && chosen.length === 0) {
    fail(
      "RL9009",
      `Nothing works on run.${name.replace(/^run\./, "")}.${didYouMean(`run.${name}`, working.keys())} \`rlcli status\` shows what does.`,
    );
  }
  if (chosen.length === 0 && !context.isJson) context.out("No run is being worked on.\n");
  const { kill } = context.interruption();
  const aborted = AbortSignal.abort();
  const stopped = await Promise.all(
    chosen.map(async ([address, folder]) => {
      const pid = readStatus(folder)?.process.pid;
      if (pid === undefined) return { address };
      const end = await attachWorker(folder, pid, {
        stop: aborted,
        kill: flags.now ? aborted : kill,
        from: eventsOffset(folder),
        onEvent: () => {},
      });
      if (!context.isJson)
        context.out(`${address} has stopped${end ? ` at step ${end.step}` : ""}. \`rlcli apply\` resumes it.\n`);
      return { address, ...(end ? { step: end.step } : {}) };
    }),
  );
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: STOP_JSON_VERSION, stopped })}\n`);
  return EXIT.done;
}

/** Folders of the incarnations that live workers are on, by run; also of runs that have left the spec. */
async function workersOf(context: CommandContext, open: OpenProject): Promise<ReadonlyMap<`run.${string}`, string>> {
  const { refreshed } = await planProject(
    { ...open, kinds },
    { targets: [], replace: [], destroy: false, signal: context.outputClosed },
  );
  const folders = new Map<`run.${string}`, string>();
  for (const [address, observation] of refreshed.observations) {
    if (!address.startsWith("run.")) continue;
    const { busy } = (observation as Observation<RunSeen>).seen;
    if (busy !== undefined) folders.set(address as `run.${string}`, busy);
  }
  return folders;
}
