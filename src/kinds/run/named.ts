/** Steps of a run that others need: that blocks of the spec name (`from: warmup@40`), and that deployments point at. */
import type { Address } from "../../address.ts";
import type { Spec } from "../../spec.ts";
import type { StateRecord } from "../../state-record.ts";
import { type DeployedAt, deploymentResults } from "../deployment-record.ts";

export function namedSteps(spec: Spec | undefined, run: Address): readonly number[] {
  const steps = new Set<number>();
  for (const node of spec?.nodes.values() ?? []) {
    for (const { to, selector } of node.references) {
      if (to === run && selector !== undefined && selector !== "best") steps.add(Number(selector));
    }
  }
  return [...steps].sort((a, b) => a - b);
}

/** Checkpoints that deployments point at, or can be rolled back to. */
export function deployedPlaces(records: Iterable<StateRecord>): readonly DeployedAt[] {
  return [...records].flatMap((record) => {
    const results = record.address.startsWith("deployment.") ? deploymentResults(record) : undefined;
    return results ? [results, ...results.history] : [];
  });
}
