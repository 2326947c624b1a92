/** What a run of type `rl` is told beside its settings: its environment, the evals that look on, the KL penalty's reference. */
import { existsSync } from "node:fs";
import type { Address } from "../../address.ts";
import { firstRows } from "../../datasets/head.ts";
import { fail, hasErrors, RlcliError } from "../../diagnostic.ts";
import type { Digest } from "../../digest.ts";
import type { EnvironmentOrder, EvalOrder } from "../../environment-order.ts";
import type { ActContext } from "../../kind.ts";
import type { CheckpointId, RlOrder } from "../../run-record.ts";
import type { SpecNode } from "../../spec.ts";
import type { Json } from "../../value.ts";
import { numberAt, referenceTo, stringAt } from "../attributes.ts";
import { environmentOrder, fieldFaults, harborEnvironmentOrder, isHarbor } from "../environment.ts";
import { checkpointNamed } from "./find.ts";
import { bringTo } from "./move.ts";
import { samplingOf } from "./settings.ts";

type Context = ActContext<unknown, unknown>;

/** Undefined for other types. */
export async function rlOrderOf(context: Context, node: SpecNode): Promise<RlOrder | undefined> {
  if (stringAt(node, "type") !== "rl") return undefined;
  const number = (path: string) => numberAt(node, path);
  const [target, collapse] = [number("early_stop.target"), number("early_stop.collapse")];
  const reference = (number("kl_penalty") ?? 0) > 0 ? await referencePath(context, node) : undefined;
  return {
    environment: await environmentAt(context, node, "environment"),
    evals: await watchingEvals(context, node),
    max_failure_rate: number("max_failure_rate") as number,
    early_stop: {
      ...(target === undefined ? {} : { target }),
      ...(collapse === undefined ? {} : { collapse }),
      window: number("early_stop.window") as number,
    },
    ...(reference === undefined ? {} : { reference }),
    ...(context.project.isSmoke ? { keep_constant: true } : {}),
  };
}

/** The environment that a block refers to, with the tasks as they are planned. */
async function environmentAt(context: Context, node: SpecNode, path: string): Promise<EnvironmentOrder> {
  const to = referenceTo(node, path) as Address;
  const environment = context.nodeOf(to) as SpecNode;
  if (isHarbor(environment)) {
    // What this block was planned on; of an eval that looks on nothing is known here.
    const isOwn = node.address === context.address;
    const planned = isOwn ? context.identity?.attributes.get("dataset.content")?.value : undefined;
    return harborEnvironmentOrder(environment, planned as Digest | undefined, context.project, context.stop);
  }
  const dataset = referenceTo(environment, "dataset") as Address;
  const tasks = context.lineageOf(dataset)?.hash ?? context.recordOf(dataset)?.hash;
  if (!tasks) throw new Error(`${dataset} was not planned`);
  const order = environmentOrder(environment, tasks, context.project);
  await requireFields(environment, order);
  return order;
}

/** The last look before anything is sampled: the rows of a hub or an import were not here when it was planned. */
async function requireFields(environment: SpecNode, { tasks }: EnvironmentOrder): Promise<void> {
  if (!existsSync(tasks.path)) return;
  const faults = fieldFaults(environment, tasks.address, await firstRows(tasks.path));
  if (hasErrors(faults)) throw new RlcliError(faults);
}

/** Evals of this run that are also made while it trains. */
async function watchingEvals(context: Context, run: SpecNode): Promise<readonly EvalOrder[]> {
  const watching: EvalOrder[] = [];
  for (const { path } of run.references) {
    const name = /^evals\.(.+)$/.exec(path)?.[1];
    const node = name === undefined ? undefined : context.nodeOf(`eval.${name}`);
    if (node) watching.push(await evalOrder(context, node));
  }
  return watching;
}

export async function evalOrder(context: Context, node: SpecNode): Promise<EvalOrder> {
  const number = (path: string) => numberAt(node, path) as number;
  const tasks = numberAt(node, "tasks");
  return {
    address: node.address,
    environment: await environmentAt(context, node, "environment"),
    sampling: samplingOf(node),
    ...(tasks === undefined ? {} : { tasks }),
    samples: number("samples"),
    seed: number("seed"),
    pass_reward: number("pass_reward"),
    template_kwargs: (node.body.template_kwargs as Record<string, unknown> | undefined) ?? {},
    every: number("every"),
  };
}

/** Sampler weights of the reference: of the run that is named, else of the one that this run starts from, else the base model's. */
async function referencePath(context: Context, node: SpecNode): Promise<string | undefined> {
  const field = node.references.some(({ path }) => path === "kl_reference") ? "kl_reference" : "from";
  const run = referenceTo(node, field);
  const written = context.identity?.attributes.get(`${field}.checkpoint`)?.value as Json | undefined;
  if (!run || !written) return undefined;
  const found = checkpointNamed(context.project.dataFolder, run, written as unknown as CheckpointId);
  if (found?.sampler !== undefined) {
    const own = referenceTo(node, "server") as Address;
    await bringTo(context, found.sampler, found.server, own);
    return found.sampler;
  }
  return fail(
    "RL4002",
    `${run} has no weights for sampling at the place that the KL penalty of ${node.address} compares with; they are kept of final and best checkpoints. Name one of those with kl_reference.`,
    { address: node.address },
  );
}
