/** What only the whole plan shows of a run: whether the place on its parent that it starts from is, or will be, there. */
import { type Diagnostic, diagnostic } from "../../diagnostic.ts";
import type { DecideContext, Upstream } from "../../kind.ts";
import type { Kept, RunSeen } from "./observe.ts";

export function checkRun({ node, upstream }: DecideContext<unknown, RunSeen>): readonly Diagnostic[] {
  const reference = node.references.find((candidate) => candidate.path === "from");
  if (reference?.selector === undefined || reference.selector === "best") return [];
  const fault = stepFault(upstream(reference.to), Number(reference.selector));
  if (fault === undefined) return [];
  const range = node.rangeOf("from");
  return [diagnostic("RL2101", fault, { address: node.address, range, sourceLine: node.lineOf(range) })];
}

function stepFault(parent: Upstream, step: number): string | undefined {
  const { address } = parent.node;
  const kept = keptOf(parent);
  // Steps ahead of it will be saved, since this run names them.
  if (!kept || kept.step < step || kept.durable.some((checkpoint) => checkpoint.step === step)) return undefined;
  const there = kept.durable.map((checkpoint) => checkpoint.step).join(", ");
  return `${address} is past step ${step} and kept no checkpoint there${there ? ` (it has ${there})` : ""}. Start from one of those, or train it again with --replace ${address}, which then keeps step ${step}.`;
}

/** The incarnation that the parent is or will be, where there is something of it already. */
function keptOf({ lineage, observation }: Upstream): Kept | undefined {
  const { kept } = observation.seen as RunSeen;
  return kept.find((k) => k.generation === lineage.hash && k.incarnation === lineage.incarnation);
}
