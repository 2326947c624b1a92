/**
 * A parsed spec between YAML and the checked form: maps, lists and scalars that know where they were written. Subtrees
 * are shared where YAML aliases share them; nothing here is changed after it was built.
 */
import type { Scalar, SecretRef } from "../value.ts";
import type { Source, Span } from "./source.ts";

interface Located {
  readonly source: Source;
  readonly span: Span;
}

export interface ScalarTree extends Located {
  readonly type: "scalar";
  readonly value: Scalar | SecretRef;
  /** Already reported: what follows from this value's fault is not reported again. */
  readonly isFaulty?: boolean;
}

export interface ListTree extends Located {
  readonly type: "list";
  readonly items: readonly Tree[];
}

export interface Entry {
  readonly key: Located;
  readonly value: Tree;
}

export interface MapTree extends Located {
  readonly type: "map";
  readonly entries: ReadonlyMap<string, Entry>;
}

export type Tree = ScalarTree | ListTree | MapTree;

/** The value of a map's key; undefined where it is no map or has no such key. */
export function child(tree: Tree | undefined, key: string): Tree | undefined {
  return tree?.type === "map" ? tree.entries.get(key)?.value : undefined;
}

/** The value behind a dotted path of keys. */
export function descend(tree: Tree | undefined, path: string): Tree | undefined {
  let at = tree;
  for (const key of path === "" ? [] : path.split(".")) at = child(at, key);
  return at;
}

/** The text of a scalar; undefined for anything else. */
export function textOf(tree: Tree | undefined): string | undefined {
  return tree?.type === "scalar" && typeof tree.value === "string" ? tree.value : undefined;
}

export function entriesOf(tree: Tree | undefined): ReadonlyMap<string, Entry> {
  return tree?.type === "map" ? tree.entries : EMPTY;
}

const EMPTY: ReadonlyMap<string, Entry> = new Map();

/** A copy of a map with one key set or, with `undefined`, removed; the order of keys is kept. */
export function withEntry(tree: MapTree, key: string, entry: Entry | undefined): MapTree {
  const entries = new Map(tree.entries);
  if (entry === undefined) entries.delete(key);
  else entries.set(key, entry);
  return { ...tree, entries };
}

/** A copy of the tree with the value at a path mapped; where the path leads nowhere, the tree itself. */
export function mapAt(tree: Tree, path: readonly string[], change: (value: Tree) => Tree): Tree {
  const [key, ...rest] = path;
  if (key === undefined) return change(tree);
  const entry = tree.type === "map" ? tree.entries.get(key) : undefined;
  if (entry === undefined || tree.type !== "map") return tree;
  const value = mapAt(entry.value, rest, change);
  return value === entry.value ? tree : withEntry(tree, key, { key: entry.key, value });
}

/** Maps every value of a map; the same map if none changed. */
export function mapEntries(tree: MapTree, change: (value: Tree, key: string) => Tree): MapTree {
  let entries: Map<string, Entry> | undefined;
  for (const [key, entry] of tree.entries) {
    const value = change(entry.value, key);
    if (value === entry.value) continue;
    entries ??= new Map(tree.entries);
    entries.set(key, { key: entry.key, value });
  }
  return entries === undefined ? tree : { ...tree, entries };
}

/**
 * The plain value. `scalar` maps each scalar (secrets are still references there). Maps get no prototype, so that a key
 * such as `__proto__` is only a key.
 */
export function plainOf(tree: Tree, scalar: (value: Scalar | SecretRef) => unknown = (value) => value): unknown {
  switch (tree.type) {
    case "scalar":
      return scalar(tree.value);
    case "list":
      return tree.items.map((item) => plainOf(item, scalar));
    case "map": {
      const out = Object.create(null) as Record<string, unknown>;
      for (const [key, entry] of tree.entries) out[key] = plainOf(entry.value, scalar);
      return out;
    }
    default:
      return tree satisfies never;
  }
}
