/**
 * The dependency graph of a plan: nodes are addresses, edges point from a block to what it refers to. Linear in nodes and
 * edges, and free of recursion, so that a hundred thousand blocks are no problem.
 */
import type { Address } from "../address.ts";
import { type Diagnostic, diagnostic } from "../diagnostic.ts";

export interface Graph {
  /** Every address with what it needs; needs outside the graph are left out. */
  readonly needs: ReadonlyMap<Address, readonly Address[]>;
}

export function buildGraph(needs: Iterable<readonly [Address, Iterable<Address>]>): Graph {
  const raw = new Map<Address, Set<Address>>();
  for (const [address, list] of needs) raw.set(address, new Set(list));
  const known = new Map<Address, readonly Address[]>();
  for (const [address, set] of raw)
    known.set(
      address,
      [...set].filter((need) => raw.has(need)),
    );
  return { needs: known };
}

/** Who needs an address, directly. */
export function dependents(graph: Graph): ReadonlyMap<Address, readonly Address[]> {
  const result = new Map<Address, Address[]>();
  for (const address of graph.needs.keys()) result.set(address, []);
  for (const [address, needs] of graph.needs) for (const need of needs) result.get(need)?.push(address);
  return result;
}

/**
 * Addresses so that each comes after all it needs; among the free ones the order in which they were given. What lies on
 * or behind a cycle is missing from `order`, and one diagnostic names the circle.
 */
export function sortGraph(graph: Graph): {
  order: readonly Address[];
  diagnostics: readonly Diagnostic[];
} {
  const waiting = new Map<Address, number>();
  for (const [address, needs] of graph.needs) waiting.set(address, needs.length);
  const backward = dependents(graph);
  const order: Address[] = [];
  for (const [address, count] of waiting) if (count === 0) order.push(address);
  for (let at = 0; at < order.length; at++) {
    for (const next of backward.get(order[at] as Address) ?? []) {
      const left = (waiting.get(next) ?? 0) - 1;
      waiting.set(next, left);
      if (left === 0) order.push(next);
    }
  }
  if (order.length === waiting.size) return { order, diagnostics: [] };
  const circle = findCycle(graph, new Set(order));
  const path = [...circle, circle[0]].join(" → ");
  return {
    order,
    diagnostics: [
      diagnostic("RL2001", `These blocks need each other in a circle: ${path}. Remove one of the references.`, {
        address: circle[0],
      }),
    ],
  };
}

/** All that the given addresses need, directly or not, themselves included. */
export function closure(graph: Graph, from: Iterable<Address>): ReadonlySet<Address> {
  const reached = new Set<Address>();
  const open = [...from].filter((address) => graph.needs.has(address));
  for (let address = open.pop(); address; address = open.pop()) {
    if (reached.has(address)) continue;
    reached.add(address);
    for (const need of graph.needs.get(address) ?? []) open.push(need);
  }
  return reached;
}

/** Walks needs among the unsorted addresses until one repeats: every one of them has an unsorted need. */
function findCycle(graph: Graph, sorted: ReadonlySet<Address>): readonly Address[] {
  const start = [...graph.needs.keys()].find((address) => !sorted.has(address)) as Address;
  const trail: Address[] = [];
  const at = new Map<Address, number>();
  for (let address = start; ; ) {
    const seen = at.get(address);
    if (seen !== undefined) return trail.slice(seen);
    at.set(address, trail.length);
    trail.push(address);
    address = (graph.needs.get(address) ?? []).find((need) => !sorted.has(need)) as Address;
  }
}
