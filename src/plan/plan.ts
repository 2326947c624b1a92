/**
 * The planner: a pure function of spec, records and observations. It knows no kind by name, no clock and no network; what
 * was observed is passed in, so everything it can decide is tested with plain values.
 */
import { type Address, kindOf } from "../address.ts";
import type { Action, Change, Drift } from "../change.ts";
import { type Diagnostic, diagnostic } from "../diagnostic.ts";
import type { Decision, Identity, Kind, Kinds, Observation, Upstream } from "../kind.ts";
import type { Reference, Spec, SpecNode } from "../spec.ts";
import type { StateRecord } from "../state-record.ts";
import { actionOf, diffAttributes, reasonOf } from "./diff.ts";
import { buildGraph, closure, dependents, type Graph, sortGraph } from "./graph.ts";

export interface PlanInput {
  /** Undefined plans the end of everything that is recorded. */
  readonly spec: Spec | undefined;
  readonly kinds: Kinds;
  readonly records: ReadonlyMap<Address, StateRecord>;
  /** By address; a missing one counts as never looked at. */
  readonly observations: ReadonlyMap<Address, Observation<unknown>>;
  /** What the kinds resolved of their inputs; a block without facts had errors and is left out with its dependents. */
  readonly facts: ReadonlyMap<Address, unknown>;
  /** Empty: everything. */
  readonly targets: readonly Address[];
  readonly replace: readonly Address[];
}

export interface PlanResult {
  /** In an order in which they can be carried out; unchanged blocks are included as `none`. */
  readonly changes: readonly Change[];
  readonly diagnostics: readonly Diagnostic[];
  readonly identities: ReadonlyMap<Address, Identity>;
  /** Servers asked to hold more than they have room for: their work runs in waves. */
  readonly queues: readonly Queue[];
}

export interface Queue {
  readonly address: Address;
  readonly slots: number;
  /** In the order in which they take a slot. */
  readonly waves: readonly (readonly Address[])[];
}

const UNSEEN: Observation<undefined> = {
  status: "unknown",
  seen: undefined,
  drift: [],
};

export function planChanges(input: PlanInput): PlanResult {
  const diagnostics: Diagnostic[] = [...unknownAddresses(input)];
  const graph = specGraph(input.spec);
  const sorted = sortGraph(graph);
  diagnostics.push(...sorted.diagnostics);
  const chosen = input.targets.length > 0 ? closure(graph, input.targets) : undefined;
  for (const address of input.replace) {
    const fault = replaceFault(address, input, graph, chosen);
    if (fault !== undefined) diagnostics.push(diagnostic("RL2003", fault));
  }

  const planned = new Map<Address, Upstream>();
  const changes: Change[] = [];
  for (const address of sorted.order) {
    if (chosen && !chosen.has(address)) continue;
    const node = input.spec?.nodes.get(address) as SpecNode;
    const result = planNode(node, input, planned);
    if (!result) continue;
    diagnostics.push(...result.diagnostics);
    planned.set(address, result.upstream);
    if (result.change) changes.push(result.change);
  }
  changes.push(...planRemovals(input, changes));
  const identities = new Map([...planned].map(([address, upstream]) => [address, upstream.identity]));
  return {
    changes,
    diagnostics,
    identities,
    queues: planQueues(input, changes),
  };
}

/** True where applying would do something. */
export function hasChanges(changes: readonly Change[]): boolean {
  return changes.some((change) => change.action !== "none");
}

function specGraph(spec: Spec | undefined): Graph {
  const nodes = [...(spec?.nodes.values() ?? [])];
  return buildGraph(nodes.map((node) => [node.address, node.references.map((reference: Reference) => reference.to)]));
}

interface PlannedNode {
  readonly change: Change | undefined;
  readonly upstream: Upstream;
  readonly diagnostics: readonly Diagnostic[];
}

/** Undefined where the block or something it needs could not be resolved; that has been reported already. */
function planNode(node: SpecNode, input: PlanInput, planned: ReadonlyMap<Address, Upstream>): PlannedNode | undefined {
  const { address } = node;
  const kind = kindFor(input.kinds, address);
  if (!input.facts.has(address)) return undefined;
  if (node.references.some((reference) => !planned.has(reference.to))) return undefined;
  const facts = input.facts.get(address);
  const record = input.records.get(address);
  const observation = input.observations.get(address) ?? UNSEEN;
  const upstream = (to: Address): Upstream => {
    const found = planned.get(to);
    if (!found) throw new Error(`${address} asked for ${to}, which it does not refer to`);
    return found;
  };
  const context = { node, facts, record, observation, upstream };
  const identity = kind.identify(context);
  if (kind.isInline) {
    const lineage = { hash: identity.hash, incarnation: 1 };
    return {
      change: undefined,
      upstream: { node, identity, lineage, action: "none", facts, observation },
      diagnostics: kind.check?.({ ...context, identity, changes: [], forced: undefined }) ?? [],
    };
  }
  const attributes = diffAttributes(record?.attributes ?? {}, identity, (path) => kind.ruleOf?.(path) ?? "update");
  const forced = forcedBy(input, address, record);
  const decideContext = { ...context, identity, changes: attributes, forced };
  const decision = kind.decide?.(decideContext) ?? decide(decideContext);
  const after = { hash: identity.hash, incarnation: decision.incarnation };
  const change: Change = {
    address,
    kind: node.kind,
    action: decision.action,
    reasons: decision.reasons,
    attributes,
    drift: observation.drift,
    ...(record ? { before: { hash: record.hash, incarnation: record.incarnation } } : {}),
    after,
    dependsOn: neededBlocks(node, input),
    ...(observation.busy ? { busy: observation.busy } : {}),
    ...(decision.estimate ? { estimate: decision.estimate } : {}),
    ...(decision.detail === undefined ? {} : { detail: decision.detail }),
  };
  return {
    change,
    upstream: {
      node,
      identity,
      lineage: after,
      action: decision.action,
      facts,
      observation,
    },
    diagnostics: [...(decision.diagnostics ?? []), ...(kind.check?.(decideContext) ?? [])],
  };
}

function forcedBy({ replace }: PlanInput, address: Address, record: StateRecord | undefined): string | undefined {
  if (replace.includes(address)) return "--replace names it";
  return record?.tainted ? "it is tainted" : undefined;
}

/** What must be there before a block is worked on. Inline blocks stand for what they refer to. */
function neededBlocks(node: SpecNode, input: PlanInput): readonly Address[] {
  const needed = new Set<Address>();
  for (const { to } of node.references) {
    const inline = input.kinds.get(kindOf(to))?.isInline ? input.spec?.nodes.get(to) : undefined;
    for (const address of inline ? neededBlocks(inline, input) : [to]) needed.add(address);
  }
  return [...needed];
}

interface GenericContext {
  readonly record: StateRecord | undefined;
  readonly observation: Observation<unknown>;
  readonly changes: Change["attributes"];
  readonly forced: string | undefined;
}

/** The decision for kinds that follow their attributes' rules. */
function decide({ record, observation, changes, forced }: GenericContext): Decision {
  if (!record)
    return {
      action: "create",
      incarnation: 1,
      reasons: ["it does not exist yet"],
    };
  const { incarnation } = record;
  if (forced)
    return {
      action: "replace",
      incarnation: incarnation + 1,
      reasons: [`replaced because ${forced}`],
    };
  const wanted = actionOf(changes);
  if (wanted === "replace")
    return {
      action: "replace",
      incarnation: 1,
      reasons: [reasonOf("replace", changes)],
    };
  if (record.status !== "ready" && !observation.busy) {
    return {
      action: "create",
      incarnation,
      reasons: [`its last ${record.status === "failed" ? "attempt failed" : "apply did not finish"}`],
    };
  }
  const mending = strongestMend(observation.drift);
  if (observation.status === "absent" && !mending) return { action: "create", incarnation, reasons: ["it is gone"] };
  if (wanted !== "none")
    return {
      action: wanted,
      incarnation,
      reasons: [reasonOf(wanted, changes)],
    };
  if (mending) return { action: mending.mend, incarnation, reasons: [mending.message] };
  return { action: "none", incarnation, reasons: [] };
}

const MEND_ORDER: readonly Action[] = ["replace", "create", "restart", "resume", "update"];

function strongestMend(drift: readonly Drift[]): Drift | undefined {
  const mending = drift.filter((item) => item.mend !== "none");
  return mending.sort((a, b) => MEND_ORDER.indexOf(a.mend) - MEND_ORDER.indexOf(b.mend))[0];
}

/** Records whose block is gone from the spec, users before what they use. */
function planRemovals(input: PlanInput, changes: readonly Change[]): readonly Change[] {
  const gone = [...input.records.values()].filter((record) => !input.spec?.nodes.has(record.address));
  const chosen = gone.filter((record) => input.targets.length === 0 || input.targets.includes(record.address));
  if (chosen.length === 0) return [];
  const graph = buildGraph([...input.records.values()].map((record) => [record.address, record.dependsOn]));
  const users = dependents(graph);
  const { order } = sortGraph(graph);
  const position = new Map(order.map((address, at) => [address, at]));
  const acting = new Set<Address>([
    ...changes.filter((c) => c.action !== "none").map((c) => c.address),
    ...chosen.map((r) => r.address),
  ]);
  return chosen
    .sort((a, b) => (position.get(b.address) ?? 0) - (position.get(a.address) ?? 0))
    .map((record) => {
      const kind = kindFor(input.kinds, record.address);
      const observation = input.observations.get(record.address) ?? UNSEEN;
      return {
        address: record.address,
        kind: kind.name,
        action: kind.removal,
        reasons: [input.spec ? "it is no longer in the spec" : "everything is to be destroyed"],
        attributes: [],
        drift: [],
        before: { hash: record.hash, incarnation: record.incarnation },
        dependsOn: (users.get(record.address) ?? []).filter((user) => acting.has(user)),
        ...(observation.busy ? { busy: observation.busy } : {}),
      };
    });
}

/** Work beyond a server's slots queues in graph order; this tells how it falls into waves. */
function planQueues(input: PlanInput, changes: readonly Change[]): readonly Queue[] {
  const byServer = new Map<Address, Address[]>();
  for (const change of changes) {
    if (!takesSlot(change)) continue;
    for (const to of change.dependsOn) {
      const node = input.spec?.nodes.get(to);
      if (!node || !input.kinds.get(node.kind)?.slots) continue;
      const users = byServer.get(to);
      if (users) users.push(change.address);
      else byServer.set(to, [change.address]);
    }
  }
  const queues: Queue[] = [];
  for (const [address, users] of byServer) {
    const node = input.spec?.nodes.get(address) as SpecNode;
    const slots = input.kinds.get(node.kind)?.slots?.(node) ?? Number.POSITIVE_INFINITY;
    if (users.length <= slots) continue;
    const waves: Address[][] = [];
    for (let at = 0; at < users.length; at += slots) waves.push(users.slice(at, at + slots));
    queues.push({ address, slots, waves });
  }
  return queues;
}

/** Actions during which a block holds a model on its server. */
export function takesSlot(change: Change): boolean {
  return ["create", "extend", "resume", "replace"].includes(change.action) || change.busy !== undefined;
}

function unknownAddresses(input: PlanInput): readonly Diagnostic[] {
  const isKnown = (address: Address) => input.spec?.nodes.has(address) || input.records.has(address);
  const unknown = [...new Set([...input.targets, ...input.replace])].filter((address) => !isKnown(address));
  const names = [...(input.spec?.nodes.keys() ?? [])];
  const hint = names.length > 0 && names.length <= 20 ? ` The spec has ${names.join(", ")}.` : "";
  return unknown.map((address) =>
    diagnostic(
      "RL2003",
      `There is no ${address} in the spec or in the state.${hint} Use kind.name, for example run.agent.`,
    ),
  );
}

/** Why `--replace` of an address that is known would do nothing; undefined where it does something. */
function replaceFault(
  address: Address,
  { spec, kinds, records }: PlanInput,
  graph: Graph,
  chosen: ReadonlySet<Address> | undefined,
): string | undefined {
  if (!spec?.nodes.has(address))
    return records.has(address)
      ? `${address} is to be replaced, but the spec does not have it any more. Put it back, or leave out \`--replace ${address}\`.`
      : undefined;
  if (kinds.get(kindOf(address))?.isInline) {
    const users = dependents(graph).get(address) ?? [];
    const instead = users.length > 0 ? ` Replace what uses it: ${users.join(", ")}.` : "";
    return `${address} cannot be replaced: it is part of what uses it.${instead}`;
  }
  if (chosen && !chosen.has(address))
    return `${address} is to be replaced, but none of the targets needs it, so nothing would be done. Add \`--target ${address}\`.`;
  return undefined;
}

function kindFor(kinds: Kinds, address: Address): Kind {
  const kind = kinds.get(kindOf(address));
  if (!kind) throw new Error(`no kind for ${address}`);
  return kind;
}
