/** What the kinds share in turning a block into an identity. */
import type { Address, KindName } from "../address.ts";
import { fieldOf } from "../config/changes.ts";
import { digestJson } from "../digest.ts";
import type { Identity, Upstream } from "../kind.ts";
import type { ChangeRule, SpecAttribute, SpecNode } from "../spec.ts";
import { isSecret, type Value } from "../value.ts";

/** The `x-change` of a path of a kind's block; what the schema no longer knows is an update. */
export function ruleOf(kind: KindName, path: string): ChangeRule {
  return fieldOf(kind, path)?.change ?? "update";
}

/** Values that make a thing what it is: written leaves whose change replaces it, without names and defaults. */
export function hashedLeaves(attributes: ReadonlyMap<string, SpecAttribute>): Record<string, Value> {
  const leaves: Record<string, Value> = {};
  for (const [path, attribute] of attributes) {
    if (attribute.change === "replace" && !attribute.isDefault) leaves[path] = attribute.value;
  }
  return leaves;
}

/** The identity of a kind whose attributes speak for themselves. */
export function plainIdentity(node: SpecNode): Identity {
  return {
    attributes: node.attributes,
    because: new Map(),
    hash: digestJson({ kind: node.kind, leaves: hashedLeaves(node.attributes) }),
  };
}

/** The address that a reference field names. */
export function referenceTo(node: SpecNode, path: string): Address | undefined {
  return node.references.find((reference) => reference.path === path)?.to;
}

/** The block that a reference field names, as planned. */
export function referenced(node: SpecNode, path: string, upstream: (to: never) => Upstream): Upstream | undefined {
  const to = referenceTo(node, path);
  return to && upstream(to as never);
}

export function numberAt(node: SpecNode, path: string): number | undefined {
  const value = node.attributes.get(path)?.value;
  return typeof value === "number" ? value : undefined;
}

export function stringAt(node: SpecNode, path: string): string | undefined {
  const value = node.attributes.get(path)?.value;
  return typeof value === "string" ? value : undefined;
}

/** The name of the secret that a field holds. */
export function secretAt(node: SpecNode, path: string): string | undefined {
  const value = node.attributes.get(path)?.value;
  return isSecret(value) ? value.$secret : undefined;
}
