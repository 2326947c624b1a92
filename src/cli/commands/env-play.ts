/** `rlcli env play`: a person in the agent's place, with the agent's tool, and then the tests. */
import { createInterface } from "node:readline/promises";
import { trialSettings } from "../../environments/harbor/environment.ts";
import { Trial } from "../../environments/harbor/trial.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import type { TaskFlags } from "../environment.ts";
import { trialLines } from "../views/env.ts";
import { taskNamed, withHost } from "./env.ts";

const HELP = "Every line is a command in a new shell, as an agent's are. `exit` or Ctrl-D ends, and the tests judge.";

export async function envPlay(
  context: CommandContext,
  tasks: string | undefined,
  flags: TaskFlags & { readonly task?: string },
): Promise<ExitCode> {
  return withHost(context, tasks, flags, async (open, host, signal) => {
    const task = taskNamed(open, flags.task);
    const settings = trialSettings(open.order);
    const trial = new Trial(task, { host, settings, env: context.env, signal });
    const lines = createInterface({ input: process.stdin, terminal: false });
    const next = lines[Symbol.asyncIterator]();
    try {
      context.err(`starting ${task.name}\n`);
      await trial.begin();
      do {
        context.out(`${trial.step.instruction.trimEnd()}\n\n`);
        context.err(`${context.errStyle.dim(HELP)}\n`);
        await playStep(
          trial,
          context,
          open.order.agent.command_timeout_ms,
          open.order.agent.output_bytes,
          next,
          signal,
        );
        context.err("judging\n");
      } while (await trial.judge());
      context.out(trialLines(trial.rewards.task));
      return EXIT.done;
    } finally {
      lines.close();
      await trial.close();
    }
  });
}

async function playStep(
  trial: Trial,
  context: CommandContext,
  timeoutMs: number,
  keepBytes: number,
  lines: AsyncIterator<string>,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    context.err("$ ");
    const line = await nextLine(lines, signal);
    if (line === undefined || line.trim() === "exit") return;
    if (line.trim() === "") continue;
    const result = await trial.sandbox.run({ command: line, user: trial.agentUser, timeoutMs, keepBytes, signal });
    context.out(result.stdout.text);
    context.err(result.stderr.text);
    if (result.hasTimedOut) context.err(`[killed after ${timeoutMs / 1000} s]\n`);
    if (result.memoryKills > 0) context.err("[killed: the container's memory is used up]\n");
    if (!result.hasTimedOut && result.exitCode !== 0) context.err(`[exit code ${result.exitCode}]\n`);
  }
}

/** Undefined at the end of the input. */
async function nextLine(lines: AsyncIterator<string>, signal: AbortSignal): Promise<string | undefined> {
  signal.throwIfAborted();
  const aborted = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
  const { value, done } = await Promise.race([lines.next(), aborted]);
  return done ? undefined : value;
}
