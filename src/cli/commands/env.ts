/** `rlcli env list|check|run`: tasks in sandboxes without training. */
import { join } from "node:path";
import { type Diagnostic, diagnostic, fail, messageOf, RlcliError } from "../../diagnostic.ts";
import { folderOutput, type TrialOutput } from "../../environments/harbor/artifacts.ts";
import { openHost, trialSettings } from "../../environments/harbor/environment.ts";
import { checkTrial } from "../../environments/harbor/oracle.ts";
import { type Rewards, scalarOf } from "../../environments/harbor/reward.ts";
import { Trial } from "../../environments/harbor/trial.ts";
import type { SandboxHost } from "../../environments/sandbox/sandbox.ts";
import { didYouMean, listNames } from "../../suggest.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { type NamedTask, type OpenTasks, openTaskSet, type TaskFlags } from "../environment.ts";
import { checkLine, memoryWords, taskLines, trialLines } from "../views/env.ts";

export async function envList(context: CommandContext, tasks: string | undefined, flags: TaskFlags): Promise<ExitCode> {
  const open = await openTaskSet(context, tasks, flags, context.interruption().stop);
  const shown = open.tasks.map(({ name, config, digest, steps }) => ({
    name,
    digest,
    steps: steps.length,
    cpus: config.environment.cpus ?? null,
    memoryMb: config.environment.memoryMb ?? null,
    network: config.environment.network,
    agentSeconds: config.agent.timeoutSec ?? null,
    description: config.description,
  }));
  context.out(
    context.isJson ? `${JSON.stringify({ formatVersion: 1, tasks: shown })}\n` : taskLines(shown, context.style),
  );
  return EXIT.done;
}

export interface CheckFlags extends TaskFlags {
  readonly minOracle: number;
}

/** What became of one trial. */
export interface Tried {
  readonly rewards?: Rewards;
  readonly reward?: number;
  /** Processes that were killed because the container's memory was used up; absent where none was. */
  readonly memoryKills?: number;
  readonly fault?: Diagnostic;
}

export interface CheckedTask {
  readonly name: string;
  readonly oracle: Tried;
  readonly nop: Tried;
  readonly passed: boolean;
}

/** Every task with its own solution, which must reach `minOracle`, and with nobody, who must not. */
export async function envCheck(
  context: CommandContext,
  tasks: string | undefined,
  flags: CheckFlags,
): Promise<ExitCode> {
  const { minOracle } = flags;
  const results = await withHost(context, tasks, flags, (open, host, signal) =>
    Promise.all(
      open.tasks.map(async (task): Promise<CheckedTask> => {
        const [oracle, nop] = await Promise.all(
          (["oracle", "nop"] as const).map((agent) => tryTask({ context, open, host, signal, task, agent })),
        );
        const passed =
          (oracle?.reward ?? Number.NEGATIVE_INFINITY) >= minOracle &&
          (nop?.reward ?? Number.POSITIVE_INFINITY) < minOracle;
        const checked = { name: task.name, oracle: oracle as Tried, nop: nop as Tried, passed };
        if (!context.isJson) context.out(checkLine(checked, context.style));
        return checked;
      }),
    ),
  );
  const failed = results.filter(({ passed }) => !passed);
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, minOracle, tasks: results })}\n`);
  else context.out(`\n${results.length - failed.length} of ${results.length} tasks are as they should be.\n`);
  context.report(failed.map((one) => failedCheck(one, minOracle)));
  return failed.length === 0 ? EXIT.done : EXIT.failed;
}

function failedCheck({ name, oracle, nop }: CheckedTask, minOracle: number): Diagnostic {
  const fault = oracle.fault ?? nop.fault;
  if (fault) return diagnostic("RL7307", `${name}: ${fault.detail} (${fault.code})`);
  const isIdle = (oracle.reward ?? 0) >= minOracle;
  const why = isIdle
    ? `doing nothing gets ${nop.reward}, and must get less than ${minOracle}`
    : `its own solution gets ${oracle.reward}, and must get at least ${minOracle}`;
  return diagnostic("RL7307", `${name}: ${why}. Mend the task, or leave it out with \`exclude\`.`);
}

export interface RunFlags extends TaskFlags {
  readonly agent: "oracle" | "nop";
  /** Instead of an agent: run as it would run it. */
  readonly command?: readonly string[];
  readonly out?: string;
}

/** One trial of one task, with its files. */
export async function envRun(
  context: CommandContext,
  tasks: string | undefined,
  flags: RunFlags & { task: string },
): Promise<ExitCode> {
  const { agent, command, out } = flags;
  return withHost(context, tasks, flags, async (open, host, signal) => {
    const task = taskNamed(open, flags.task);
    const output = out === undefined ? undefined : folderOutput(join(context.cwd, out));
    const asked = { context, open, host, signal, task, agent, ...(output ? { output } : {}) };
    const tried = await tryTask(command === undefined ? asked : { ...asked, command });
    if (context.isJson) context.out(`${JSON.stringify({ formatVersion: 1, name: task.name, ...tried })}\n`);
    else if (tried.rewards) context.out(trialLines(tried.rewards));
    if (!context.isJson && tried.memoryKills) context.err(`${memoryWords(tried.memoryKills)}\n`);
    if (tried.fault) context.report([tried.fault]);
    return tried.fault ? EXIT.failed : EXIT.done;
  });
}

export function taskNamed({ tasks }: OpenTasks, name: string | undefined): NamedTask {
  const [only, other] = tasks;
  const names = tasks.map((task) => task.name);
  if (name === undefined) return only && !other ? only : fail("RL9003", `Say which task: ${listNames(names)}.`);
  const found = tasks.find((task) => task.name === name || task.config.name === name);
  return (
    found ?? fail("RL7206", `There is no task \`${name}\`.${didYouMean(name, names)} There are ${listNames(names)}.`)
  );
}

interface Asked {
  readonly context: CommandContext;
  readonly open: OpenTasks;
  readonly host: SandboxHost;
  readonly signal: AbortSignal;
  readonly task: NamedTask;
  readonly agent: "oracle" | "nop";
  readonly command?: readonly string[];
  readonly output?: TrialOutput;
}

async function tryTask(asked: Asked): Promise<Tried> {
  const { context, open, host, signal, task, agent, command, output } = asked;
  const settings = trialSettings(open.order);
  let isFaulty = true;
  let trial: Trial | undefined;
  try {
    trial = new Trial(task, { host, settings, env: context.env, signal, ...(output ? { output } : {}) });
    const { task: rewards } =
      command === undefined
        ? await checkTrial(trial, agent, signal)
        : await commandTrial(trial, command, context, signal);
    isFaulty = false;
    return { rewards, reward: scalarOf(rewards, open.order.agent.reward_key), ...memoryOf(trial) };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof RlcliError)) throw error;
    return { fault: error.diagnostics[0] ?? diagnostic("RL7303", messageOf(error)), ...memoryOf(trial) };
  } finally {
    await trial?.close({ keep: isFaulty && open.order.sandbox.keep_failed });
  }
}

const memoryOf = (trial: Trial | undefined) => (trial?.memoryKills ? { memoryKills: trial.memoryKills } : {});

/** Commands in the agent's place; each step of a task gets all of them. */
async function commandTrial(trial: Trial, commands: readonly string[], context: CommandContext, signal: AbortSignal) {
  await trial.begin();
  do {
    for (const command of commands) {
      const result = await trial.sandbox.run({
        command,
        user: trial.agentUser,
        timeoutMs: trial.agentTimeoutMs,
        signal,
      });
      context.err(result.stdout.text + result.stderr.text);
    }
  } while (await trial.judge());
  return trial.rewards;
}

/** Tasks and a daemon for as long as `work` takes; whatever happens, nothing stays. */
export async function withHost<T>(
  context: CommandContext,
  tasks: string | undefined,
  flags: TaskFlags,
  work: (open: OpenTasks, host: SandboxHost, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { stop: signal } = context.interruption();
  const open = await openTaskSet(context, tasks, flags, signal);
  const host = await openHost(open.order, {
    env: context.env,
    cacheFolder: open.project.cacheFolder,
    onHost: (text) => context.err(`${text}\n`),
  });
  try {
    return await work(open, host, signal);
  } finally {
    await host.close();
  }
}
