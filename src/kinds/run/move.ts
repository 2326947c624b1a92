/**
 * Checkpoints on another server than the one that made them: where both keep them in the same form, a run that is given to another
 * server takes its checkpoints along, and one that starts from another server's checkpoint gets a copy. Elsewhere the plan says why not.
 */
import { join } from "node:path";
import type { Address } from "../../address.ts";
import { fail } from "../../diagnostic.ts";
import { writeFileWhole } from "../../files.ts";
import type { ActContext } from "../../kind.ts";
import { deleteCheckpoint } from "../../servers/checkpoints.ts";
import { copyCheckpoints, enterCheckpoints } from "../../servers/transfer.ts";
import type { SpecNode } from "../../spec.ts";
import { readRunSummary } from "../../training/progress.ts";
import { pathsOf } from "../checkpoints.ts";
import { serverFolder, serverSettings } from "../connect.ts";
import { ensurePython } from "../skyrl.ts";
import type { Kept } from "./observe.ts";

type Context = Pick<ActContext<unknown, unknown>, "project" | "nodeOf" | "stop" | "phase" | "address">;

/**
 * Takes a run's checkpoints along to the server that its block names by now. They are copied, then its record names the new server, then
 * they go from the old one: cut off anywhere, the next apply ends it.
 */
export async function takeAlong(context: Context, kept: Kept | undefined, to: Address): Promise<void> {
  const { project, phase } = context;
  if (kept?.server === undefined || kept.server === to) return;
  const paths = pathsOf(kept.durable);
  phase(`moving ${kept.durable.length} checkpoints from ${kept.server} to ${to}`);
  await copyTo(context, kept.server, to, paths);
  const { order } = readRunSummary(kept.folder);
  writeFileWhole(join(kept.folder, "spec.json"), `${JSON.stringify({ ...order, server: to }, undefined, 1)}\n`);
  const source = serverFolder(project.dataFolder, kept.server);
  for (const path of paths) deleteCheckpoint(source, path);
}

/** Makes sure that a checkpoint of another run can be loaded on `to`. */
export async function bringTo(context: Context, path: string, from: Address | undefined, to: Address): Promise<void> {
  if (from !== undefined && from !== to) await copyTo(context, from, to, [path]);
}

async function copyTo(context: Context, from: Address, to: Address, paths: readonly string[]): Promise<void> {
  const { project, nodeOf, stop, phase, address } = context;
  const target = serverFolder(project.dataFolder, to);
  const there = copyCheckpoints(serverFolder(project.dataFolder, from), target, paths);
  const lost = paths.find((path) => !there.includes(path));
  if (lost !== undefined)
    fail("RL5014", `${lost} is not in the folder of ${from}, to be brought to ${to}.`, { address });
  const { skyrl } = serverSettings(nodeOf(to) as SpecNode);
  if (!skyrl) return;
  const { folder } = await ensurePython(skyrl, project, { signal: stop, onPhase: phase });
  await enterCheckpoints(target, folder, paths);
}
