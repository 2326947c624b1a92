/** `rlcli rollouts --export`: attempts as ATIF trajectories, in folders such as Harbor makes of its trials, for its tools to read. */
import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { BASH_TOOL } from "../../environments/harbor/calls.ts";
import { writeFileWhole } from "../../files.ts";
import { type Attempt, isLost, type Rollout } from "../../training/rl/rollout.ts";
import {
  type Trajectory,
  type TrajectoryContext,
  trajectoriesOf,
  trajectoryFile,
} from "../../training/rl/trajectory.ts";
import { type CommandContext, EXIT, type ExitCode, VERSION } from "../context.ts";
import type { Attempts } from "./rollouts.ts";

interface ExportOptions {
  /** Folder, as the command line names it. */
  readonly to: string;
  readonly tokens?: boolean;
  readonly decode: TrajectoryContext["decode"];
}

/** Writes a folder for each; one that was lost has its fault instead of a reward, and a trajectory as far as it came. */
export function exportAttempts(
  context: CommandContext,
  found: Attempts,
  chosen: readonly Attempt[],
  { to, tokens: hasTokens = false, decode }: ExportOptions,
): ExitCode {
  const folder = resolve(context.cwd, to);
  for (const attempt of chosen) {
    const trial = trialName(found, attempt);
    const agent = join(folder, trial, "agent");
    mkdirSync(agent, { recursive: true });
    writeJson(join(folder, trial, "result.json"), resultOf(found, attempt, trial));
    for (const [at, document] of documentsOf(attempt, found, { decode, hasTokens }).entries())
      writeJson(join(agent, trajectoryFile(at)), document);
  }
  const lost = chosen.filter(isLost);
  const silent = lost.filter(({ turns = [] }) => turns.length === 0).length;
  if (context.isJson)
    context.out(`${JSON.stringify({ formatVersion: 1, folder, written: chosen.length, lost: lost.length })}\n`);
  else {
    const without = silent === 0 ? "" : `, ${silent} of them without a trajectory`;
    const lostWords = lost.length === 0 ? "" : `, ${lost.length} of them lost${without}`;
    context.out(`${found.title}: ${chosen.length} written to ${to}${lostWords}\n`);
  }
  return EXIT.done;
}

/** An attempt's conversations. */
export function documentsOf(
  attempt: Attempt,
  { address, generation, step, model, toolFormat, taskNames }: Attempts,
  { decode, hasTokens }: Pick<TrajectoryContext, "decode" | "hasTokens">,
): readonly Trajectory[] {
  const { group, index, task } = attempt;
  const name = taskNames[task];
  return trajectoriesOf(attempt, {
    sessionId: `${address}/${generation === undefined ? "" : `${generation.slice(-12)}/`}${step}/${group}.${index}`,
    agent: {
      name: "rlcli",
      version: VERSION,
      model_name: model,
      // Of a model that knows no tools the system message says how to call it.
      ...(toolFormat && toolFormat !== "bash_block" ? { tool_definitions: [BASH_TOOL] } : {}),
    },
    ...(toolFormat ? { toolFormat } : {}),
    hasTokens,
    extra: { address, step, group, index, task, ...(name ? { task_name: name } : {}) },
    decode,
  });
}

/** `hello-file__000012-0.3`. */
function trialName({ step, taskNames }: Attempts, { task, group, index }: Attempt): string {
  const name = (taskNames[task] || `task-${task}`).replaceAll(/[^A-Za-z0-9._-]+/g, "-");
  return `${name}__${String(step).padStart(6, "0")}-${group}.${index}`;
}

/** What Harbor's tools read of a trial beside its trajectory. */
function resultOf({ model, taskNames, address }: Attempts, attempt: Attempt, trial: string): object {
  const common = {
    task_name: taskNames[attempt.task] || `task-${attempt.task}`,
    trial_name: trial,
    run_id: address,
    agent_info: { name: "rlcli", version: VERSION, model_info: { name: model, provider: "rlcli" } },
  };
  if (isLost(attempt)) {
    const { code, message } = attempt.fault;
    return { ...common, exception_info: { exception_type: code, exception_message: message }, verifier_result: null };
  }
  return { ...common, exception_info: null, verifier_result: { rewards: rewardsOf(attempt) } };
}

/** The reward that was trained on, and beside it what the tests gave by their own keys. */
function rewardsOf({ reward, metrics }: Rollout): Readonly<Record<string, number>> {
  const prefix = "verifier/";
  const named = Object.entries(metrics).filter(([key]) => key.startsWith(prefix));
  return { ...Object.fromEntries(named.map(([key, value]) => [key.slice(prefix.length), value])), reward };
}

const writeJson = (path: string, value: object): void => writeFileWhole(path, `${JSON.stringify(value, null, 2)}\n`);
