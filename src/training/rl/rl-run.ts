/** A run of reinforcement learning at work: its environment, and those of the evals that look on. */
import type { EnvironmentOrder, EvalOrder } from "../../environment-order.ts";
import { type Environment, openEnvironment } from "../../environments/environment.ts";
import type { RlOrder, RlSettings, RunOrder } from "../../run-record.ts";
import type { Renderer } from "../../tokens/renderer.ts";
import { Batches } from "../batches.ts";
import type { RunRecord } from "../record.ts";
import { Run, type TrainingDeps } from "../run.ts";

export interface OpenEval {
  readonly order: EvalOrder;
  readonly environment: Environment;
}

export interface RlParts {
  readonly renderer: Renderer;
  readonly environment: Environment;
  readonly evals: readonly OpenEval[];
}

export class RlRun extends Run<RlSettings> {
  readonly rl: RlOrder;
  readonly parts: RlParts;

  constructor(order: RunOrder<RlSettings>, deps: TrainingDeps, record: RunRecord, parts: RlParts) {
    const { groups_per_batch: batch_size, seed } = order.settings;
    const tasks = Array.from({ length: parts.environment.count }, (_, task) => task);
    super(order, deps, record, new Batches(tasks, () => 1, { batch_size, seed }));
    if (!order.rl) throw new RangeError(`${order.address} has no environment`);
    this.rl = order.rl;
    this.parts = parts;
  }

  /** Evals that are made after a step; 0 is before the first. */
  evalsAt(step: number): readonly OpenEval[] {
    return this.parts.evals.filter(({ order: { every } }) => step === this.total || step % every === 0);
  }

  evaluatesAt(step: number): boolean {
    return this.evalsAt(step).length > 0;
  }

  /** Tasks of a step, in the order of its groups. */
  tasksOf(step: number): readonly number[] {
    return this.batches.at(step).rows;
  }
}

/**
 * Opens what a run needs beside its server; `onHost` is told when a host of sandboxes is lost or back. Fails with RL7102 (a grader) or
 * RL8002 (the tasks).
 */
export async function openParts(
  order: RunOrder<RlSettings>,
  deps: TrainingDeps,
  renderer: Renderer,
  onHost: (text: string) => void,
): Promise<RlParts> {
  const { environment, evals } = order.rl as RlOrder;
  const opened: Environment[] = [];
  const open = async (one: EnvironmentOrder): Promise<Environment> => {
    const { env = {}, cacheFolder = deps.folder } = deps;
    opened.push(await openEnvironment(one, { folder: one.folder, env, cacheFolder, onHost }));
    return opened.at(-1) as Environment;
  };
  try {
    const own = await open(environment);
    const looking: OpenEval[] = [];
    for (const one of evals) looking.push({ order: one, environment: await open(one.environment) });
    return { renderer, environment: own, evals: looking };
  } catch (error) {
    await Promise.all(opened.map((one) => one.close()));
    throw error;
  }
}

export async function closeParts({ environment, evals }: RlParts): Promise<void> {
  await Promise.all([environment, ...evals.map((one) => one.environment)].map((one) => one.close()));
}
