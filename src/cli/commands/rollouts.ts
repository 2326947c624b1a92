/** `rlcli rollouts`: what a run or an eval was answered, what each answer was worth and why. Looks, and changes nothing. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fail, RlcliError } from "../../diagnostic.ts";
import type { HarborOrder } from "../../environment-order.ts";
import { referenceTo, stringAt } from "../../kinds/attributes.ts";
import { evalFolder } from "../../kinds/eval/results.ts";
import { modelFolder } from "../../kinds/model.ts";
import type { RunOrder } from "../../run-record.ts";
import { didYouMean } from "../../suggest.ts";
import type { ToolFormat } from "../../tokens/calls.ts";
import { loadRenderer } from "../../tokens/load.ts";
import { readRunRecord } from "../../training/progress.ts";
import { type Attempt, isLost, type Rollout } from "../../training/rl/rollout.ts";
import { evalPath, readAttempts, readRollouts, stepsWithRollouts } from "../../training/rl/rollout-files.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import { openWith } from "../open.ts";
import type { SpecOptions } from "../options.ts";
import { openRun, runPlace } from "../run-record.ts";
import { renderAttempts, type ShownAttempt } from "../views/rollouts.ts";
import { documentsOf, exportAttempts } from "./rollouts-export.ts";

export interface RolloutFlags extends Partial<SpecOptions> {
  readonly step?: number;
  readonly worst?: number;
  readonly best?: number;
  /** Row of the task, or its name. */
  readonly task?: string;
  readonly lost?: boolean;
  readonly limit?: number;
  /** Folder that they are written to instead of shown. */
  readonly export?: string;
  readonly tokens?: boolean;
}

export const ROLLOUTS_JSON_VERSION = 1;

/** Attempts shown where nothing else is said. */
const DEFAULT_LIMIT = 5;

export interface Attempts {
  /** `run.agent, step 12`. */
  readonly title: string;
  /** Of the run or the eval. */
  readonly address: string;
  readonly generation?: string;
  readonly step: number;
  readonly attempts: readonly Attempt[];
  readonly model: string;
  /** Folder with the model's tokenizer. */
  readonly modelFolder: string;
  /** How tools are called, where there are some. */
  readonly toolFormat?: ToolFormat;
  /** By their rows; empty where tasks have no names or nobody knows them. */
  readonly taskNames: readonly string[];
}

export async function rollouts(context: CommandContext, name: string, flags: RolloutFlags): Promise<ExitCode> {
  const found = await (name.startsWith("eval.") ? ofEval(context, name, flags) : ofRun(context, name, flags));
  if (flags.tokens && flags.export === undefined) fail("RL9003", "--tokens goes with --export.");
  const fitting = fittingOf(found, flags);
  const chosen = choose(fitting, flags);
  const { tokenizer } = await loadRenderer(found.modelFolder);
  const decode: Decode = (tokens) => tokenizer.decode(tokens);
  if (flags.export !== undefined) return exportAttempts(context, found, chosen, { ...flags, to: flags.export, decode });
  const shown = chosen.map((attempt) => shownOf(attempt, found, decode));
  if (context.isJson) {
    const { step } = found;
    for (const attempt of shown)
      context.out(`${JSON.stringify({ formatVersion: ROLLOUTS_JSON_VERSION, step, ...attempt })}\n`);
    return EXIT.done;
  }
  context.out(renderAttempts({ ...found, fitting: fitting.length, shown }, context));
  return EXIT.done;
}

async function ofRun(context: CommandContext, name: string, flags: RolloutFlags): Promise<Attempts> {
  const { open, address, folder } = await openRun(context, name, flags);
  const order = orderOf(folder, address);
  const steps = stepsWithRollouts(folder);
  if (steps.length === 0) fail("RL9009", `${address} has no rollouts yet.`);
  const step = flags.step ?? (steps.at(-1) as number);
  if (!steps.includes(step)) fail("RL9009", `${address} has no rollouts of step ${step}. It has ${rangesOf(steps)}.`);
  return {
    title: `${address}, step ${step}`,
    address,
    generation: order.generation,
    step,
    attempts: readRollouts(folder, step),
    model: order.model,
    modelFolder: await modelFolder(order.model, open.context),
    ...toolsOf(order.rl?.environment.harbor),
  };
}

function toolsOf(harbor: HarborOrder | undefined): Pick<Attempts, "toolFormat" | "taskNames"> {
  if (!harbor) return { taskNames: [] };
  return { toolFormat: harbor.agent.tool_format, taskNames: harbor.tasks.map(({ name }) => name) };
}

/** The order of a run that has rollouts. Fails with RL9009 where its record is gone, RL9003 for one that is not of type rl. */
export function orderOf(folder: string, address: string): RunOrder {
  const { order, diagnostics } = readRunRecord(folder);
  if (!order && diagnostics.length > 0) throw new RlcliError(diagnostics);
  if (!order)
    fail(
      "RL9009",
      `The run record of ${address} is gone (${folder}), and its rollouts with it. \`rlcli plan\` says what an apply does about it.`,
    );
  if (!order.rl) fail("RL9003", `${address} is not a run of reinforcement learning, so it has no rollouts.`);
  return order;
}

/** `1, 2, 5 to 40`. */
export function rangesOf(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of numbers) {
    const last = ranges.at(-1);
    if (last && number === last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([from, to]) => (from === to ? `${from}` : `${from} to ${to}`)).join(", ");
}

/** Of an eval's own measurement, or with a step of the one that was made while the run trained. */
async function ofEval(context: CommandContext, address: string, flags: RolloutFlags): Promise<Attempts> {
  const open = await openWith(context, flags);
  const name = address.slice("eval.".length);
  const node = open.spec?.nodes.get(`eval.${name}`) ?? fail("RL9009", `The spec has no ${address}.`);
  const server = open.spec?.nodes.get(referenceTo(node, "server") as never);
  const model = (server && stringAt(server, "model")) ?? "";
  const environment = open.spec?.nodes.get(referenceTo(node, "environment") as never);
  const isHarbor = environment !== undefined && stringAt(environment, "type") === "harbor";
  const toolFormat = isHarbor ? (stringAt(environment, "tool_format") as ToolFormat) : undefined;
  const { title, path, step } = await placeOf();
  if (!existsSync(path)) fail("RL9009", `${title} has no attempts here. \`rlcli eval ${name}\` measures it.`);
  const attempts = readAttempts(path);
  return {
    title,
    address,
    step,
    attempts,
    model,
    modelFolder: await modelFolder(model, open.context),
    ...(toolFormat ? { toolFormat } : {}),
    taskNames: namesOf(attempts),
  };

  async function placeOf() {
    if (flags.step !== undefined) {
      const run = node.references.find(({ path: field }) => field === "checkpoint")?.to as string;
      const { folder } = await runPlace(open, run);
      return {
        title: `${address} after step ${flags.step} of ${run}`,
        path: evalPath(folder, name, flags.step),
        step: flags.step,
      };
    }
    const record = await open.store.read(`eval.${name}`);
    if (!record) return fail("RL9009", `${address} has not been measured. \`rlcli eval ${name}\` does.`);
    const step = Number(record.results.step ?? 0);
    const folder = evalFolder(open.context.dataFolder, name, record.hash);
    return { title: `${address}, step ${step}`, path: join(folder, "attempts.jsonl"), step };
  }
}

/** By row, as far as attempts say. */
function namesOf(attempts: readonly Attempt[]): readonly string[] {
  const named = attempts.filter(({ taskName }) => taskName !== undefined);
  const names = Array<string>(named.reduce((most, { task }) => Math.max(most, task + 1), 0)).fill("");
  for (const { task, taskName } of named) names[task] = taskName as string;
  return names;
}

/** Those that are asked for, by place. */
function fittingOf({ attempts, taskNames }: Attempts, { task: asked, lost }: RolloutFlags): readonly Attempt[] {
  const task = asked === undefined ? undefined : rowOf(asked, taskNames);
  const ordered = [...attempts].sort((a, b) => a.group - b.group || a.index - b.index);
  return ordered.filter((a) => (task === undefined || a.task === task) && (!lost || isLost(a)));
}

function rowOf(task: string, names: readonly string[]): number {
  const found = names.indexOf(task);
  if (found >= 0) return found;
  if (/^\d+$/.test(task)) return Number(task);
  if (names.length === 0) return fail("RL9003", `--task ${task}: the tasks here have no names; give a row, from 0.`);
  return fail("RL9009", `There is no task \`${task}\`.${didYouMean(task, names)}`);
}

function choose(fitting: readonly Attempt[], flags: RolloutFlags): readonly Attempt[] {
  const { worst, best, limit = flags.export === undefined ? DEFAULT_LIMIT : undefined } = flags;
  if (worst === undefined && best === undefined) return fitting.slice(0, limit);
  const graded = fitting.filter((attempt): attempt is Rollout => !isLost(attempt));
  const sign = worst !== undefined ? 1 : -1;
  return graded.sort((a, b) => sign * (a.reward - b.reward)).slice(0, worst ?? best);
}

type Decode = (tokens: Int32Array) => string;

function shownOf(attempt: Attempt, found: Attempts, decode: Decode): ShownAttempt {
  const name = found.taskNames[attempt.task];
  const named = name ? { taskName: name } : {};
  const { turns = [], ...others } = attempt;
  const { reference: _, ...rest } = { reference: undefined, ...others };
  let known = new Int32Array();
  const said = turns.map(({ prompt, tokens, text, stop }) => {
    // Of a later turn only what was added is told; where the prompt is another, all of it.
    const isAdded = known.every((token, at) => token === prompt[at]);
    const asked = decode(isAdded ? prompt.subarray(known.length) : prompt);
    known = Int32Array.from([...prompt, ...tokens]);
    return { prompt: asked, answer: text, tokens: tokens.length, stop };
  });
  if (found.toolFormat === undefined) return { ...rest, ...named, turns: said };
  const conversations = documentsOf(attempt, found, { decode, hasTokens: false });
  return { ...rest, ...named, turns: said, conversations: conversations.map(({ steps }) => steps) };
}
