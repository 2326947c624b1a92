/** From an error's path in the checked value back to the tree: what stands there, in which block and under which field. */
import { type Address, addressOf } from "../address.ts";
import { kindOfKey } from "./blocks.ts";
import type { BlockName } from "./fields.ts";
import type { Entry, MapTree, Tree } from "./tree.ts";

export interface Place {
  readonly value: Tree;
  /** The entry that holds the value; undefined for the whole file. */
  readonly entry: Entry | undefined;
  readonly block: BlockName;
  /** Dotted, within the block. */
  readonly path: string;
  /** What a reader calls it: the last key as written. */
  readonly label: string;
  readonly address: Address | undefined;
}

/** The keys of a JSON pointer. */
function keysOf(pointer: string): string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((key) => key.replaceAll("~1", "/").replaceAll("~0", "~"));
}

/**
 * The last key that the user wrote: a list's name for its items, and for what a shorthand stands for the key of the
 * shorthand (an expanded shorthand's key and value are one tree, see expand.ts).
 */
function labelOf(root: MapTree, keys: readonly string[]): string {
  let at: Tree = root;
  let label = "";
  for (const key of keys) {
    if (at.type !== "map") return label;
    const entry = at.entries.get(key);
    if (entry === undefined || entry.key === entry.value) return label;
    label = key;
    at = entry.value;
  }
  return label;
}

export function placeOf(root: MapTree, pointer: string): Place {
  const keys = keysOf(pointer);
  let value: Tree = root;
  let entry: Entry | undefined;
  for (const key of keys) {
    if (value.type === "list") value = value.items[Number(key)] ?? value;
    else {
      entry = value.type === "map" ? (value.entries.get(key) ?? entry) : entry;
      value = entry?.value ?? value;
    }
  }
  const [top = "", name, ...rest] = keys;
  const at = { value, entry, label: labelOf(root, keys) };
  const kind = kindOfKey(top);
  if (name !== undefined && kind !== undefined)
    return { ...at, block: kind as BlockName, path: rest.join("."), address: addressOf(kind, name) };
  if (name !== undefined && top === "variables")
    return { ...at, block: "variable", path: rest.join("."), address: undefined };
  return { ...at, block: "spec", path: keys.join("."), address: undefined };
}
