/**
 * A small world for planner and engine tests: kinds whose reality is a map, specs built from plain values. `server` restarts on
 * its port, `run` is replaced by its rate, extended by its steps, follows what it refers to; `loss` is inline.
 */
import type { Address, KindName } from "../../src/address.ts";
import { digestJson } from "../../src/digest.ts";
import type { Identity, Kind, Kinds, Observation, Outcome } from "../../src/kind.ts";
import type { ChangeRule, Spec, SpecAttribute, SpecNode } from "../../src/spec.ts";
import type { Value } from "../../src/value.ts";

export interface FakeBlock {
  readonly [field: string]: Value;
}

/** Fields by kind and their rules; `needs` is the reference field, a list of addresses. */
const RULES: Readonly<Record<string, ChangeRule>> = {
  model: "replace",
  port: "restart",
  price: "update",
  content: "replace",
  rate: "replace",
  steps: "extend",
  note: "none",
};

export function fakeSpec(blocks: Readonly<Record<string, FakeBlock>>): Spec {
  const nodes = new Map<Address, SpecNode>();
  const range = {
    file: "rlcli.yaml",
    start: { line: 1, column: 1, offset: 0 },
    end: { line: 1, column: 2, offset: 1 },
  };
  for (const [key, body] of Object.entries(blocks)) {
    const address = key as Address;
    const attributes = new Map<string, SpecAttribute>();
    for (const [path, value] of Object.entries(body)) {
      if (path !== "needs") attributes.set(path, { value, change: RULES[path] ?? "update", isDefault: false });
    }
    const needs = (body.needs as readonly Address[] | undefined) ?? [];
    nodes.set(address, {
      address,
      kind: address.split(".")[0] as KindName,
      name: address.split(".")[1] as string,
      body,
      attributes,
      references: needs.map((to) => ({ path: "needs", to })),
      range,
      rangeOf: () => range,
      lineOf: () => "",
    });
  }
  return { project: "test", folder: "/nowhere", nodes, inputs: [] };
}

/** What really exists. */
export interface FakeWorld {
  readonly things: Map<Address, { readonly hash: string; readonly attributes: Readonly<Record<string, Value>> }>;
  readonly log: string[];
  /** Called before each act; throws or returns to fail on schedule. */
  before?: (address: Address, action: string) => Promise<Outcome | undefined>;
  /** Called when the world has changed and nothing is recorded yet; throws to die there. */
  after?: () => void;
}

export const newWorld = (): FakeWorld => ({ things: new Map(), log: [] });

function fakeKind(name: KindName, world: FakeWorld, extra: Partial<Kind>): Kind {
  return {
    name,
    removal: "destroy",
    ruleOf: (path) => RULES[path] ?? "update",
    read: async ({ address, record }): Promise<Observation<undefined>> => {
      const isThere = world.things.has(address);
      return { status: isThere || !record ? "present" : "absent", seen: undefined, drift: [] };
    },
    identify: ({ node, upstream }): Identity => {
      const attributes = new Map(node.attributes);
      const because = new Map<string, Address>();
      for (const { to } of node.references) {
        const { identity, lineage, node: other } = upstream(to);
        if (other.kind === "server") continue;
        attributes.set(`${to}.content`, {
          value: `${identity.hash}/${lineage.incarnation}`,
          change: "replace",
          isDefault: false,
        });
        because.set(`${to}.content`, to);
      }
      const leaves = [...attributes].filter(([, a]) => a.change === "replace").map(([path, a]) => [path, a.value]);
      return { attributes, because, hash: digestJson({ name, leaves }) };
    },
    act: async ({ address, change, identity }): Promise<Outcome> => {
      const early = await world.before?.(address, change.action);
      if (early) return early;
      world.log.push(`${change.action} ${address}`);
      if (change.action === "destroy" || change.action === "forget") {
        world.things.delete(address);
        world.after?.();
        return { status: "done", record: "removed" };
      }
      const attributes = Object.fromEntries([...(identity?.attributes ?? [])].map(([path, a]) => [path, a.value]));
      world.things.set(address, { hash: `${change.after?.hash}/${change.after?.incarnation}`, attributes });
      world.after?.();
      return { status: "done", record: { status: "ready", results: {} } };
    },
    ...extra,
  };
}

export function fakeKinds(world: FakeWorld): Kinds {
  return new Map<KindName, Kind>([
    ["server", fakeKind("server", world, { slots: (node) => (node.body.slots as number | undefined) ?? 2 })],
    ["dataset", fakeKind("dataset", world, {})],
    ["loss", fakeKind("loss", world, { isInline: true })],
    ["run", fakeKind("run", world, { removal: "forget" })],
  ]);
}
