/**
 * `runs:` — training. A worker process does the work and writes the run's record itself, so that it goes on when `apply` is
 * gone; `apply` starts it and watches.
 */
import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Address } from "../address.ts";
import { manifestPath, rowsPath } from "../datasets/dataset.ts";
import { diagnostic, fail } from "../diagnostic.ts";
import { JsonLinesFile, readJsonLines, writeFileWhole } from "../files.ts";
import { type ActContext, draftOf, type HeldLease, type Kind, type Outcome, type OutcomeRecord } from "../kind.ts";
import {
  type CheckpointLine,
  type MetricsLine,
  RUN_RECORD_VERSION,
  type RunEnd,
  type RunOrder,
} from "../run-record.ts";
import type { SpecNode } from "../spec.ts";
import type { Json, JsonObject } from "../value.ts";
import { numberAt, referenceTo, ruleOf, stringAt } from "./attributes.ts";
import { deleteCheckpoints, pathsOf, serverOfRun } from "./checkpoints.ts";
import { serverSettings } from "./connect.ts";
import { datasetsFolder } from "./dataset.ts";
import type { DeployedAt } from "./deployment-record.ts";
import { modelFolder } from "./model.ts";
import { attachWorker, eventsOffset, hasTakenOver, readStatus } from "./run/attach.ts";
import { checkRun } from "./run/check.ts";
import { decideRun, type RunDetail } from "./run/decide.ts";
import { checkpointNamed } from "./run/find.ts";
import { checkpointForm } from "./run/form.ts";
import { identifyRun, type RunResults, resultsOf } from "./run/identity.ts";
import { bringTo, takeAlong } from "./run/move.ts";
import { deployedPlaces, namedSteps } from "./run/named.ts";
import { type Kept, observeRun, type RunSeen, recordsFolder, runFolder } from "./run/observe.ts";
import { rlOrderOf } from "./run/rl-order.ts";
import { lengthOf, SEMANTICS, settingsOf } from "./run/settings.ts";
import { startWorker, WORK_VERSION, writeWork } from "./run/work.ts";

type RunContext = ActContext<unknown, RunSeen>;

async function act(context: RunContext): Promise<Outcome> {
  const { change, node } = context;
  switch (change.action) {
    case "forget":
    case "destroy":
      return forget(context);
    case "restore":
    case "update":
      await takeAllAlong(context, node as SpecNode);
      return { status: "done", record: pointTo(context), summary: `at step ${stepOf(context)}` };
    default:
      if (!node) throw new Error(`${change.address} has no block to ${change.action}`);
      return train(context, node);
  }
}

/** The record of a run that already has the checkpoint it should end at. */
function pointTo(context: RunContext): OutcomeRecord {
  const step = stepOf(context);
  const kept = keptOf(context);
  const checkpoint = kept?.durable.find((candidate) => candidate.step === step);
  const results: RunResults = {
    ...baseResults(context),
    step: step ?? 0,
    ...(checkpoint ? { training: checkpoint.training } : {}),
    ...(checkpoint?.sampler ? { sampler: checkpoint.sampler } : {}),
    ...(kept && step !== undefined ? measuredAt(kept.folder, step) : {}),
    ...(checkpoint?.heldOutLoss === undefined ? {} : { heldOutLoss: checkpoint.heldOutLoss }),
    ...(checkpoint?.evalReward === undefined ? {} : { evalReward: checkpoint.evalReward }),
  };
  return { status: "ready", results: results as unknown as JsonObject };
}

function measuredAt(folder: string, step: number): { loss?: number; reward?: number } {
  const line = readJsonLines<MetricsLine>(join(folder, "metrics.jsonl")).values.findLast(
    (metrics) => metrics.step === step,
  );
  if (!line) return {};
  const reward = line.values?.["reward/mean"];
  return { loss: line.loss, ...(reward === undefined ? {} : { reward }) };
}

function stepOf({ change }: RunContext): number | undefined {
  return (change.detail as RunDetail | undefined)?.step;
}

function keptOf({ observation, change }: RunContext): Kept | undefined {
  const { after } = change;
  return observation?.seen.kept.find((k) => k.generation === after?.hash && k.incarnation === after?.incarnation);
}

/** What is known of a run's results before it ran. */
function baseResults(context: RunContext): Pick<RunResults, "semantics" | "dataset" | "continuedFrom"> {
  const { identity, record, change } = context;
  const dataset = identity?.attributes.get("dataset.content")?.value as RunResults["dataset"];
  const isSame = record?.hash === change.after?.hash;
  const from = identity?.attributes.get("from.checkpoint")?.value as Json | undefined;
  const isOwn =
    from !== undefined &&
    stringAt(context.node as SpecNode, "on_data_change") === "continue" &&
    isOwnCheckpoint(from, context);
  const continuedFrom = isOwn ? from : isSame ? resultsOf(record)?.continuedFrom : undefined;
  return {
    semantics: isSame ? (resultsOf(record)?.semantics ?? SEMANTICS) : SEMANTICS,
    dataset,
    ...(continuedFrom === undefined ? {} : { continuedFrom }),
  };
}

function isOwnCheckpoint(from: Json, { observation }: RunContext): boolean {
  const { generation } = from as { generation?: string };
  return observation?.seen.kept.some((kept) => kept.generation === generation) ?? false;
}

/** To the server that the block names: this incarnation's checkpoints, and those of others that deployments point at or may go back to. */
async function takeAllAlong(context: RunContext, node: SpecNode): Promise<void> {
  const to = referenceTo(node, "server") as Address;
  const own = keptOf(context);
  await takeAlong(context, own, to);
  const form = checkpointForm(context.nodeOf(to));
  const deployed = new Set(deployedOf(context, node).map(({ training }) => training));
  for (const kept of context.observation?.seen.kept ?? []) {
    const isDeployed = kept !== own && kept.durable.some(({ training }) => deployed.has(training));
    if (isDeployed && form !== undefined && kept.form === form) await takeAlong(context, kept, to);
  }
}

async function train(context: RunContext, node: SpecNode): Promise<Outcome> {
  const { change, project, address, record } = context;
  const lease = context.lease as HeldLease;
  const { hash, incarnation } = change.after as NonNullable<typeof change.after>;
  const folder = runFolder(project.dataFolder, node.name, hash, incarnation);
  await takeAllAlong(context, node);
  const order = await orderOf(context, node);
  markMissing(folder, keptOf(context));
  writeFileWhole(join(folder, "spec.json"), `${JSON.stringify(order, undefined, 1)}\n`);
  const settings = serverSettings(context.nodeOf(order.server) as SpecNode);
  writeWork(folder, {
    formatVersion: WORK_VERSION,
    project: {
      project: project.project,
      folder: project.folder,
      dataFolder: project.dataFolder,
      cacheFolder: project.cacheFolder,
    },
    stateFolder: join(project.dataFolder, "state"),
    lease: lease.record,
    expect: record?.version ?? 0,
    draft: draftOf(context, {
      status: "working",
      results: { ...baseResults(context), step: 0 } as unknown as JsonObject,
    }),
    server: settings,
    modelFolder: await modelFolder(order.model, project),
  });
  const from = eventsOffset(folder);
  const pid = startWorker(folder, project.env);
  lease.handOver();
  if (context.detach && (await hasTakenOver(folder, pid)))
    return { status: "detached", summary: `worker ${pid}; follow it with \`rlcli logs -f ${address}\`` };
  const end = await attachWorker(folder, pid, {
    stop: context.stop,
    kill: context.kill,
    from,
    onEvent: (event) => context.emit({ type: "change.run", at: event.at, address, event }),
  });
  return outcomeOf(end, folder, address);
}

/** Everything the worker's training loop is told. */
async function orderOf(context: RunContext, node: SpecNode): Promise<RunOrder> {
  const { project, change, spec } = context;
  const { hash, incarnation } = change.after as NonNullable<typeof change.after>;
  const target = (path: string) => referenceTo(node, path) as Address;
  const server = context.nodeOf(target("server")) as SpecNode;
  const loss = context.nodeOf(target("loss"));
  const rl = await rlOrderOf(context, node);
  const data = context.identity?.attributes.get("dataset.content")?.value as RunResults["dataset"];
  const datasets = datasetsFolder(project.dataFolder);
  if (!rl?.environment.harbor && !existsSync(manifestPath(datasets, data))) {
    fail(
      "RL6010",
      `The rows that ${node.address} is trained on are not in .rlcli/datasets any more, and its on_data_change keeps it on them. Restore them, or set on_data_change to replace.`,
      { address: node.address },
    );
  }
  const from = await startOf(context, node);
  const named = keptSteps(context, node);
  return {
    formatVersion: RUN_RECORD_VERSION,
    project: spec?.project ?? project.project,
    address: node.address,
    generation: hash,
    incarnation,
    settings: settingsOf(node, loss),
    length: lengthOf(node),
    save_every: numberAt(node, "save_every") as number,
    eval_every: numberAt(node, "eval_every") ?? 0,
    keep_last: numberAt(node, "keep_last") as number,
    ...(named.length > 0 ? { keep_steps: named } : {}),
    model: stringAt(server, "model") as string,
    server: server.address,
    dataset: rl?.environment.tasks ?? { address: target("dataset"), digest: data, path: rowsPath(datasets, data) },
    ...(from ? { from } : {}),
    ...(rl ? { rl } : {}),
  };
}

/** Steps that are saved and stay: those that the spec names, and those that deployments point at or may go back to. */
function keptSteps(context: RunContext, node: SpecNode): readonly number[] {
  const deployed = deployedOf(context, node).map(({ step }) => step);
  return [...new Set([...namedSteps(context.spec, node.address), ...deployed])].sort((a, b) => a - b);
}

function deployedOf({ spec, recordOf }: RunContext, { address }: SpecNode): readonly DeployedAt[] {
  const deployments = [...(spec?.nodes.keys() ?? [])].filter((other) => other.startsWith("deployment."));
  const records = deployments.map((other) => recordOf(other)).filter((record) => record !== undefined);
  return deployedPlaces(records).filter(({ run }) => run === address);
}

/** The checkpoint a run starts from: its parent's, as it is by now, or its own before a change of data. */
async function startOf(context: RunContext, node: SpecNode): Promise<RunOrder["from"]> {
  const written = context.identity?.attributes.get("from.checkpoint")?.value as unknown as
    | { generation: RunOrder["generation"]; incarnation: number; at: NonNullable<RunOrder["from"]>["checkpoint"]["at"] }
    | undefined;
  if (!written) return undefined;
  const reference = node.references.find((candidate) => candidate.path === "from");
  const optimizer = node.attributes.get("from_optimizer")?.value === true;
  const isOwn = isOwnCheckpoint(written as unknown as Json, context);
  const run = isOwn ? node.address : (reference?.to as Address);
  const start = checkpointNamed(context.project.dataFolder, run, written);
  if (!start) {
    fail(
      "RL4002",
      `${run} has no checkpoint at the place that ${node.address} starts from. Keep one there (keep_last, save_every), or start from its final step.`,
      { address: node.address },
    );
  }
  await bringTo(context, start.training, start.server, referenceTo(node, "server") as Address);
  return { checkpoint: { run, ...written }, path: start.training, optimizer };
}

function outcomeOf(end: RunEnd | undefined, folder: string, address: Address): Outcome {
  if (!end) {
    const detail = `The worker of ${address} ended without saying how (killed, or out of memory). Its log is ${join(folder, "log.txt")}; apply again to resume from its last checkpoint.`;
    return {
      status: "interrupted",
      record: "by-worker",
      diagnostics: [diagnostic("RL4003", detail, { severity: "error", address })],
    };
  }
  const { loss, reward } = measuredAt(folder, end.step);
  const measured = reward === undefined ? loss && `, loss ${loss.toFixed(4)}` : `, reward ${reward.toFixed(3)}`;
  const summary = `step ${end.step}${measured ?? ""}`;
  if (end.status === "complete") return { status: "done", record: "by-worker", summary };
  return { status: end.status, record: "by-worker", diagnostics: end.diagnostics ?? [], summary };
}

/**
 * Checkpoints that refresh found gone are written down as pruned, so that the loop does not go back to one of them; those that lost
 * only their sampler weights are written down anew without them, so that it saves them again.
 */
function markMissing(folder: string, kept: Kept | undefined): void {
  if (!kept || kept.missing.length + kept.samplersGone.length === 0) return;
  const file = new JsonLinesFile(join(folder, "checkpoints.jsonl"));
  const at = new Date().toISOString();
  const halves = kept.durable.filter(({ step }) => kept.samplersGone.some((gone) => gone.step === step));
  file.append(
    ...[...kept.missing, ...halves].map(({ step }): CheckpointLine => ({ t: "pruned", at, step })),
    ...halves.map((checkpoint): CheckpointLine => ({ t: "checkpoint", at, ...checkpoint })),
  );
  file.sync();
  file.close();
}

async function attach(context: RunContext): Promise<Outcome> {
  const folder = context.observation?.seen.busy;
  const pid = folder && readStatus(folder)?.process.pid;
  if (!folder || !pid) return { status: "done", record: "by-worker" };
  if (context.detach) return { status: "detached" };
  const end = await attachWorker(folder, pid, {
    stop: context.stop,
    kill: context.kill,
    from: eventsOffset(folder),
    onEvent: (event) => context.emit({ type: "change.run", at: event.at, address: context.address, event }),
  });
  return outcomeOf(end, folder, context.address);
}

/** Removal keeps records and weights under the retention policy; `destroy --weights` takes both. */
async function forget(context: RunContext): Promise<Outcome> {
  const { project, address, weights } = context;
  if (!weights) return { status: "done", record: "removed", summary: "weights kept" };
  const kept = context.observation?.seen.kept ?? [];
  let freed = 0;
  for (const { server = serverOfRun(context.node, context.record), durable } of kept) {
    if (!server) continue;
    const place = { project, server, node: context.nodeOf(server), signal: context.kill };
    freed += await deleteCheckpoints(place, pathsOf(durable));
  }
  rmSync(recordsFolder(project.dataFolder, address), { recursive: true, force: true });
  return { status: "done", record: "removed", summary: `${freed} checkpoints deleted` };
}

export const runKind: Kind<undefined, RunSeen> = {
  name: "run",
  removal: "forget",
  ruleOf: (path) => (path === "steps" || path === "epochs" ? "extend" : ruleOf("run", path)),
  read: observeRun,
  identify: identifyRun,
  decide: decideRun,
  check: checkRun,
  act,
  attach,
};
