/** `rlcli checkpoint info|delete|publish|unpublish|set-ttl`, and the listing of what a server keeps. */
import type { Address } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import { durationMs } from "../../duration.ts";
import { deleteCheckpoints } from "../../kinds/checkpoints.ts";
import { resultsOf } from "../../kinds/run/identity.ts";
import { deployedPlaces } from "../../kinds/run/named.ts";
import type { TinkerClient } from "../../tinker/client.ts";
import type { CheckpointInfo } from "../../tinker/data.ts";
import { TinkerError } from "../../tinker/errors.ts";
import { parseCheckpointPath } from "../../tinker/paths.ts";
import { confirm } from "../confirm.ts";
import { type CommandContext, EXIT, type ExitCode } from "../context.ts";
import type { OpenProject } from "../project.ts";
import { type RemoteFlags, required, serverCheckpoints, withServer } from "../remote.ts";
import { askedWeights, openPlace, type Target, targetIn } from "../target.ts";
import { renderTable } from "../views/table.ts";
import { bytes } from "../views/units.ts";

export const SERVER_CHECKPOINTS_JSON_VERSION = 1;

/** What a server keeps, of whichever runs. */
export async function serverCheckpointList(
  context: CommandContext,
  run: string | undefined,
  flags: RemoteFlags,
): Promise<ExitCode> {
  const found = await withServer(context, flags, undefined, (client) => serverCheckpoints(client, run));
  const rows = [...found].sort((a, b) => (a.time < b.time ? 1 : -1));
  if (flags.quiet) context.out(rows.map(({ tinkerPath }) => `${tinkerPath}\n`).join(""));
  else if (context.isJson)
    context.out(`${JSON.stringify({ formatVersion: SERVER_CHECKPOINTS_JSON_VERSION, checkpoints: rows })}\n`);
  else if (rows.length === 0) context.err("The server keeps no checkpoints.\n");
  else context.out(renderTable(rows, COLUMNS, context.style));
  return EXIT.done;
}

const COLUMNS = [
  { title: "checkpoint", of: ({ tinkerPath }: CheckpointInfo) => tinkerPath },
  { title: "type", of: ({ type }: CheckpointInfo) => type },
  { title: "saved", of: ({ time }: CheckpointInfo) => minute(time) },
  {
    title: "size",
    of: ({ sizeBytes }: CheckpointInfo) => (sizeBytes === undefined ? "" : bytes(sizeBytes)),
    isNumber: true,
  },
  { title: "expires", of: ({ expiresAt }: CheckpointInfo) => (expiresAt === undefined ? "" : minute(expiresAt)) },
  { title: "public", of: ({ isPublic }: CheckpointInfo) => (isPublic ? "public" : "") },
];

const minute = (time: string): string => time.slice(0, 16).replace("T", " ");

/** The paths that a name stands for: one for `tinker://…`, training state and sampler weights for a step of a run. */
export async function pathsNamed(
  target: Pick<Target, "open">,
  name: string,
): Promise<{ readonly training?: string; readonly sampler?: string }> {
  const external = parseCheckpointPath(name)?.kind === "external_weights";
  if (external) return { sampler: name };
  const asked = await askedWeights(target, name, {});
  if (!asked) return fail("RL9009", `\`${name}\` is the base model, which is no checkpoint.`);
  const { training, sampler } = asked.weights;
  return { ...(training ? { training } : {}), ...(sampler ? { sampler } : {}) };
}

async function infoOf(client: TinkerClient, path: string): Promise<CheckpointInfo> {
  const run = parseCheckpointPath(path)?.run as string;
  const found = await client.listCheckpoints(run).catch((error: unknown) => {
    if (error instanceof TinkerError && error.status === 404) return [];
    throw error;
  });
  const info = found.find(({ tinkerPath }) => tinkerPath === path);
  return info ?? fail("RL9009", `The server keeps no ${path}. \`rlcli checkpoint list\` shows what there is.`);
}

export async function checkpointInfo(context: CommandContext, name: string, flags: RemoteFlags): Promise<ExitCode> {
  const infos = await withServer(context, flags, name, async (client, target) => {
    const { training, sampler } = await pathsNamed(target, name);
    const paths = [training, sampler].filter((path) => path !== undefined);
    return Promise.all(
      paths.map(async (path) => ({ ...(await infoOf(client, path)), ...(await modelOf(client, path)) })),
    );
  });
  if (context.isJson) {
    context.out(`${JSON.stringify({ formatVersion: SERVER_CHECKPOINTS_JSON_VERSION, checkpoints: infos })}\n`);
    return EXIT.done;
  }
  for (const info of infos) {
    const rows: readonly (readonly [string, string | undefined])[] = [
      ["type", info.type],
      ["saved", minute(info.time)],
      ["size", info.sizeBytes === undefined ? undefined : bytes(info.sizeBytes)],
      ["model", info.baseModel],
      [
        "adapter",
        info.loraRank === undefined ? undefined : info.loraRank === 0 ? "none: all weights" : `rank ${info.loraRank}`,
      ],
      ["expires", info.expiresAt === undefined ? "never" : minute(info.expiresAt)],
      ["public", info.isPublic === undefined ? undefined : info.isPublic ? "yes" : "no"],
    ];
    context.out(`${context.style.bold(info.tinkerPath)}\n`);
    for (const [key, value] of rows) if (value !== undefined) context.out(`  ${key.padEnd(7)}  ${value}\n`);
  }
  return EXIT.done;
}

/** Base model and rank, of the run that saved it. */
export async function modelOf(
  client: TinkerClient,
  path: string,
): Promise<{ readonly baseModel?: string; readonly loraRank?: number }> {
  const run = parseCheckpointPath(path)?.run as string;
  try {
    const { baseModel, isLora, loraRank } = await client.rest.trainingRun(run);
    return { baseModel, loraRank: isLora ? (loraRank ?? 0) : 0 };
  } catch (error) {
    if (error instanceof TinkerError && error.status !== undefined && error.status < 500) return {};
    throw error;
  }
}

export interface DeleteFlags extends RemoteFlags {
  readonly autoApprove?: boolean;
  readonly force?: boolean;
}

/** Says what goes, asks, and deletes. What a run's record or a deployment stands on is kept, unless forced. */
export async function checkpointDelete(
  context: CommandContext,
  names: readonly string[],
  flags: DeleteFlags,
): Promise<ExitCode> {
  const open = await openPlace(context, flags);
  const groups = new Map<Address, string[]>();
  for (const name of names) {
    const target = targetIn(context, open, flags, name);
    const { training, sampler } = await pathsNamed(target, name);
    const paths = [training, sampler].filter((path) => path !== undefined);
    const { address } = target.settings;
    groups.set(address, [...(groups.get(address) ?? []), ...paths]);
  }
  const all = [...groups.values()].flat();
  if (!flags.force) await refuseNeeded(open, all);
  if (!flags.autoApprove) {
    context.err(all.map((path) => `${path}\n`).join(""));
    const question = {
      question: `Delete ${all.length === 1 ? "this" : `these ${all.length}`}?`,
      otherwise: "Add --auto-approve to go ahead.",
    };
    if (!(await confirm(context, question))) return EXIT.failed;
  }
  let deleted = 0;
  for (const [server, paths] of groups) {
    const node = open.spec?.nodes.get(server);
    deleted += await deleteCheckpoints(
      { project: open.context, server, node, signal: context.interruption().stop },
      paths,
    );
  }
  if (context.isJson)
    context.out(`${JSON.stringify({ formatVersion: SERVER_CHECKPOINTS_JSON_VERSION, paths: all, deleted })}\n`);
  else
    context.out(
      deleted === all.length
        ? `Deleted ${deleted}.\n`
        : `Deleted ${deleted}; ${all.length - deleted} were gone already.\n`,
    );
  return EXIT.done;
}

async function refuseNeeded({ store }: OpenProject, paths: readonly string[]): Promise<void> {
  const { records } = await store.list();
  const needs = new Map<string, string>();
  for (const record of records.values()) {
    const results = record.address.startsWith("run.") ? resultsOf(record) : undefined;
    if (results?.training) needs.set(results.training, record.address);
    if (results?.sampler) needs.set(results.sampler, record.address);
  }
  for (const record of records.values())
    for (const { training, sampler } of deployedPlaces([record]))
      for (const path of [training, sampler]) if (path) needs.set(path, record.address);
  for (const path of paths) {
    const by = needs.get(path);
    if (by) fail("RL9022", `${path} is what ${by} stands on. Add --force to delete it all the same.`);
  }
}

/** A change to each path of a checkpoint, told in one line. */
async function change(
  context: CommandContext,
  name: string,
  flags: RemoteFlags,
  said: string,
  work: (client: TinkerClient, path: string) => Promise<void>,
): Promise<ExitCode> {
  const paths = await withServer(context, flags, name, async (client, target) => {
    const { training, sampler } = await pathsNamed(target, name);
    const all = [training, sampler].filter((path) => path !== undefined);
    for (const path of all) {
      await infoOf(client, path);
      await work(client, path);
    }
    return all;
  });
  if (context.isJson) context.out(`${JSON.stringify({ formatVersion: SERVER_CHECKPOINTS_JSON_VERSION, paths })}\n`);
  else context.out(paths.map((path) => `${path} ${said}.\n`).join(""));
  return EXIT.done;
}

export function checkpointPublish(context: CommandContext, name: string, flags: RemoteFlags): Promise<ExitCode> {
  return change(context, name, flags, "may be read by others now", async (client, path) =>
    required(await client.rest.publish(path), "publish checkpoints"),
  );
}

export function checkpointUnpublish(context: CommandContext, name: string, flags: RemoteFlags): Promise<ExitCode> {
  return change(context, name, flags, "is private now", async (client, path) =>
    required(await client.rest.unpublish(path), "take back what was published"),
  );
}

export interface TtlFlags extends RemoteFlags {
  readonly ttl?: string;
  readonly never?: boolean;
}

export function checkpointSetTtl(context: CommandContext, name: string, flags: TtlFlags): Promise<ExitCode> {
  const { ttl, never = false } = flags;
  if ((ttl === undefined) === !never) fail("RL9003", "Give --ttl DURATION, such as 7d, or --never.");
  const seconds = ttl === undefined ? null : durationMs(ttl) / 1000;
  if (Number.isNaN(seconds))
    fail("RL9003", `--ttl takes a whole number and a unit, such as 12h or 7d, not \`${ttl}\`.`);
  const said = ttl === undefined ? "is kept for good" : `goes by itself after ${ttl}`;
  return change(context, name, flags, said, async (client, path) =>
    required(await client.rest.setTtl(path, seconds), "delete checkpoints by itself"),
  );
}
