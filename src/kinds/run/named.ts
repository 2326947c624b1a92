/** Steps of a run that other blocks of the spec name (`from: warmup@40`, `checkpoint: agent@100`). */
import type { Address } from "../../address.ts";
import type { Spec } from "../../spec.ts";

export function namedSteps(spec: Spec | undefined, run: Address): readonly number[] {
  const steps = new Set<number>();
  for (const node of spec?.nodes.values() ?? []) {
    for (const { to, selector } of node.references) {
      if (to === run && selector !== undefined && selector !== "best") steps.add(Number(selector));
    }
  }
  return [...steps].sort((a, b) => a - b);
}
