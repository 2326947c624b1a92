/** Where a deployment's place is kept, and whether it is still there. */
import { join } from "node:path";
import type { Address } from "../address.ts";
import type { ReadContext } from "../kind.ts";
import { readRunSummary } from "../training/progress.ts";
import { lineageOfSave } from "../training/save.ts";
import { checkpointLister, serverOfRun } from "./checkpoints.ts";
import { type DeployedAt, weightsOf } from "./deployment-record.ts";
import { recordsFolder } from "./run/observe.ts";

type PlaceContext = Pick<ReadContext, "project" | "nodeOf" | "recordOf">;

/** Whether a place's weights are there; undefined where the server that keeps them cannot be asked now. */
export async function isPlaceThere(context: ReadContext, place: DeployedAt): Promise<boolean | undefined> {
  const server = serverOf(context, place);
  return server && checkpointLister(context, server)(weightsOf(place));
}

/** By the record of the incarnation that made it: what a run that moves to another server does not take along stays where it was. */
function serverOf({ project, nodeOf, recordOf }: PlaceContext, { run, training }: DeployedAt): Address | undefined {
  const lineage = lineageOfSave(training);
  const made = lineage ? readRunSummary(join(recordsFolder(project.dataFolder, run), lineage)).order : undefined;
  return made?.server ?? serverOfRun(nodeOf(run), recordOf(run));
}
