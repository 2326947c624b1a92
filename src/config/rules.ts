/** All rules of a spec; see rules/. */
import { graderIsWhole, partsAreGraders, tasksComeFromOneSide } from "./rules/environments.ts";
import { addressesAreOpen, externalHasUrl, fieldsApply, keyGroups, secretsAreReferences } from "./rules/fields.ts";
import { bestIsJudged, checkpointFits, fromHasNoCycle, runHasServer, trainsOnSomething } from "./rules/references.ts";
import type { BlockRule, RuleContext } from "./rules/rule.ts";
import {
  clipsAreOrdered,
  evaluationHasRows,
  freeMapsAreJson,
  groupsFit,
  lossFitsRun,
  optimizerHasOrigin,
  parallelismDivides,
  portsAreApart,
  scheduleFits,
  sourcesAreReadable,
} from "./rules/values.ts";

/** For every block: they look at which keys are there. */
const ALWAYS: readonly BlockRule[] = [keyGroups, fieldsApply, secretsAreReferences, addressesAreOpen, runHasServer];

/** For blocks of which every field is known. Values of a wrong type are still possible, and count as not given. */
const SOUND: readonly BlockRule[] = [
  externalHasUrl,
  checkpointFits,
  bestIsJudged,
  clipsAreOrdered,
  parallelismDivides,
  portsAreApart,
  evaluationHasRows,
  scheduleFits,
  optimizerHasOrigin,
  groupsFit,
  lossFitsRun,
  sourcesAreReadable,
  freeMapsAreJson,
  trainsOnSomething,
  graderIsWhole,
  tasksComeFromOneSide,
  partsAreGraders,
];

export function checkRules(context: RuleContext): void {
  for (const block of context.blocks.values()) {
    if (block.tree.type !== "map") continue;
    for (const rule of ALWAYS) rule(block, context);
    if (!context.isFaulty(block)) for (const rule of SOUND) rule(block, context);
  }
  fromHasNoCycle(context);
}
