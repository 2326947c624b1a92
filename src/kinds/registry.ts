/** All kinds of this version; the command line hands them to planner and engine. */
import type { KindName } from "../address.ts";
import type { Kind, Kinds } from "../kind.ts";
import { datasetKind } from "./dataset.ts";
import { deploymentKind } from "./deployment.ts";
import { environmentKind } from "./environment.ts";
import { evalKind } from "./eval.ts";
import { lossKind } from "./loss.ts";
import { runKind } from "./run.ts";
import { serverKind } from "./server.ts";

export const kinds: Kinds = new Map<KindName, Kind>(
  // The engine passes each kind only facts and observations that the kind itself produced.
  [serverKind, datasetKind, lossKind, environmentKind, runKind, evalKind, deploymentKind].map((kind) => [
    kind.name,
    kind as unknown as Kind,
  ]),
);
